"""Problems of a table, present or developing: facts are gathered once (`gather`), findings are pure functions of facts.

Nothing here writes, deletes or mends; a finding names the call that does.
"""
