"""Which of the runs of a fault test CI carries out."""

from paimon_py.testing.fault_store import MODES


def one_in(every, place):
    """One run in so many, other ones for each place of a case in its list; at least one, wherever the calls end."""
    taken = []

    def share(call, mode):
        chosen = (call + place + MODES.index(mode)) % every == 0 or (not taken and call > 4 + place % 5)
        if chosen:
            taken.append(call)
        return chosen

    return share
