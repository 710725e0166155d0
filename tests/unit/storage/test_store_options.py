import pytest

from paimon_py import OptionError
from paimon_py.storage.open import open_store
from paimon_py.storage.store_options import FAMILIES, check_store_options


@pytest.mark.parametrize(("name", "meant"), [
    ("s3.acess-key", "s3.access-key"), ("s3.accessKey", "s3.access-key"), ("fs.s3a.acces.key", "fs.s3a.access-key"),
    ("s3.end-point", "s3.endpoint"), ("s3a.regoin", "s3a.region"), ("fs.oss.endpont", "fs.oss.endpoint"),
    ("fs.oss.accessKeySecert", "fs.oss.accessKeySecret"), ("oss.endpoint", "fs.oss.endpoint"),
    ("gs.auth.typ", "gs.auth.type"), ("fs.gs.auth.service.account.json.key-file", "fs.gs.auth.service.account.json.keyfile"),
    ("fs.azure.account.kee.acc.blob.core.windows.net", "fs.azure.account.key"),
    ("azure.sas.fixed.tokn", "azure.sas.fixed.token"),
])  # fmt: skip
def test_a_misspelled_option_of_a_store_is_refused_with_the_right_name(name, meant):
    with pytest.raises(OptionError, match=f"did you mean '{meant}'") as caught:
        open_store("memory://w", {name: "sesame"})
    assert "sesame" not in str(caught.value) and caught.value.option == name


@pytest.mark.parametrize("name", ["s3.foo", "fs.s3a.bucket.mine.endpoint", "fs.s3a.proxy.host", "fs.oss.credentials.provider", "fs.gs.encryption.key", "fs.azure.client.correlationid"])  # fmt: skip
def test_an_option_that_nobody_reads_is_refused_with_those_there_are(name):
    with pytest.raises(OptionError, match="there are .*, "):
        open_store("/w", {name: "x"})


def test_what_is_used_passes_in_every_spelling_and_tuning_passes_too():
    for family in FAMILIES:
        for prefix in family.prefixes:
            for name in family.used:
                check_store_options({prefix + name: "x", prefix + name.replace("-", "."): "x", prefix + name.replace(".", "-"): "x"})
    check_store_options({
        "fs.s3a.threads.max": "4", "fs.s3a.connection.maximum": "9", "fs.gs.block.size": "1", "fs.oss.multipart.upload.size": "1",
        "fs.azure.account.key.acc.dfs.core.windows.net": "k", "fs.azure.account.auth.type.acc.dfs.core.windows.net": "OAuth",
        "fs.azure.write.request.size": "1", "fs.local.fsync": "true", "bucket": "4", "my.own": "x", "hadoop.fs.foo": "x",
    })  # fmt: skip
