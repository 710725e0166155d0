import uuid

import pytest

from paimon_py.errors import OptionError, UsageError
from paimon_py.storage.cloud_options import fsspec_arguments, harmless_arguments
from paimon_py.storage.open import open_store


def test_paimons_own_names_become_fsspec_arguments():
    assert fsspec_arguments(
        "s3",
        {
            "s3.access-key": "a",
            "s3.secret-key": "b",
            "s3.endpoint": "minio:9000",
            "s3.region": "eu",
            "s3.path.style.access": "true",
            "s3.connection.ssl.enabled": "false",
        },
    ) == {
        "key": "a",
        "secret": "b",
        "client_kwargs": {"endpoint_url": "http://minio:9000", "region_name": "eu"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }


def test_hadoop_spellings_mean_the_same():
    hadoop = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.session.token": "t", "fs.s3a.endpoint": "h"}
    assert fsspec_arguments("s3", hadoop) == {
        "key": "a",
        "secret": "b",
        "token": "t",
        "client_kwargs": {"endpoint_url": "https://h"},
    }
    assert fsspec_arguments("s3", {"s3a.access-key": "a", "s3a.secret-key": "b"}) == {"key": "a", "secret": "b"}


def test_nothing_given_leaves_everything_to_the_clouds_own_chain():
    for scheme in ("s3", "gs", "abfs", "ftp"):
        assert fsspec_arguments(scheme, {"bucket": "4"}) == {}


def test_half_a_key_pair_is_refused():
    with pytest.raises(OptionError, match="must be set together"):
        fsspec_arguments("s3", {"s3.access-key": "a"})


def test_bad_values_are_refused():
    with pytest.raises(OptionError, match="true or false"):
        fsspec_arguments("s3", {"s3.path.style.access": "yes"})
    with pytest.raises(OptionError, match="auth.type"):
        fsspec_arguments("gs", {"fs.gs.auth.type": "MAGIC"})


def test_google_cloud_options():
    assert fsspec_arguments(
        "gs",
        {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "fs.gs.auth.service.account.json.keyfile": "/k.json",
            "gs.project.id": "p",
        },
    ) == {"token": "/k.json", "project": "p"}
    assert fsspec_arguments("gs", {"fs.gs.auth.type": "UNAUTHENTICATED"}) == {"token": "anon"}


def test_azure_options():
    assert fsspec_arguments("abfs", {"fs.azure.account.key.acc.blob.core.windows.net": "k"}) == {
        "account_name": "acc",
        "account_key": "k",
    }
    assert fsspec_arguments(
        "az",
        {
            "fs.azure.account.oauth2.client.id": "i",
            "fs.azure.account.oauth2.client.secret": "s",
            "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
        },
    ) == {"client_id": "i", "client_secret": "s", "tenant_id": "tenant"}


KEYS = {f"fs.azure.account.key.{name}.dfs.core.windows.net": f"key of {name}" for name in ("one", "two")}


def test_options_of_another_account_are_ignored():
    for name in ("one", "two"):
        found = fsspec_arguments("abfss", {**KEYS, "fs.azure.account.key": "of all"}, f"abfss://c@{name}.dfs.core.windows.net/w")
        assert found == {"account_name": name, "account_key": f"key of {name}"}
    third = "abfss://c@three.dfs.core.windows.net"
    assert fsspec_arguments("abfss", KEYS, third) == {}
    assert fsspec_arguments("abfss", {**KEYS, "fs.azure.account.key": "of all"}, third)["account_key"] == "of all"
    with pytest.raises(OptionError, match="the accounts 'one' and 'two', and the URL does not say which"):
        fsspec_arguments("abfss", KEYS, "abfs://c/w")
    assert fsspec_arguments("az", {next(iter(KEYS)): "k"}, "az://c/w") == {"account_name": "one", "account_key": "k"}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_environment_never_writes_a_table_to_another_account(monkeypatch):
    adlfs = pytest.importorskip("adlfs", reason='pip install "paimon-py[azure]"')
    monkeypatch.setattr(adlfs.AzureBlobFileSystem, "_cache", {})  # fsspec keeps what other tests opened in this process
    of_environment = "DefaultEndpointsProtocol=https;AccountName=theirs;AccountKey=c2VzYW1l;EndpointSuffix=core.windows.net"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", of_environment)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "c2VzYW1l")
    url = f"abfss://c@mine{uuid.uuid4().hex[:8]}.dfs.core.windows.net/w"
    account = url.partition("@")[2].partition(".")[0]
    system = open_store(url, {"fs.azure.account.key": "bWluZQ=="})[0]._system()
    assert system.service_client.primary_endpoint == f"https://{account}.blob.core.windows.net/" and system.account_key == "bWluZQ=="
    system = open_store(url, {"fs.azure.sas.fixed.token": "sv=1&sig=mine"})[0]._system()
    assert system.account_key is None and "sig=mine" in system.service_client.url
    with pytest.raises(UsageError, match=f"account '{account}', but AZURE_STORAGE_CONNECTION_STRING .* account 'theirs'") as caught:
        open_store(url, {})[0].get(f"{url}/f")
    assert "c2VzYW1l" not in str(caught.value)
    for theirs in ("abfs://c/w", "abfss://c@theirs.dfs.core.windows.net/w"):
        assert open_store(theirs, {})[0]._system().service_client.account_name == "theirs"


def test_accounts_of_other_clouds_use_their_endpoints():
    for options in ({}, {"fs.azure.account.key.acc.dfs.core.chinacloudapi.cn": "k"}):
        found = fsspec_arguments("abfss", options, "abfss://c@acc.dfs.core.chinacloudapi.cn/w")
        assert found["account_host"] == "acc.blob.core.chinacloudapi.cn" and found["account_name"] == "acc"
        assert harmless_arguments(found) == {"account_name": "acc", "account_host": "acc.blob.core.chinacloudapi.cn"}
    with pytest.raises(OptionError, match=r"must be https://login\.microsoftonline\.com/<tenant>/oauth2/token"):
        fsspec_arguments("abfss", {"fs.azure.account.oauth2.client.endpoint": "https://login.chinacloudapi.cn/t/oauth2/token"})


def test_azure_identities_use_the_credential_chain_and_other_providers_are_refused():
    provider = "fs.azure.account.oauth.provider.type.acc.dfs.core.windows.net"
    found = fsspec_arguments("abfs", {provider: "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"})
    assert found == {"account_name": "acc", "anon": False}
    for name, value in ((provider, "my.own.Provider"), ("fs.azure.account.auth.type", "Custom")):
        with pytest.raises(OptionError, match="; allowed: "):
            fsspec_arguments("abfs", {name: value})


def test_names_of_wasb_mean_the_same():
    assert fsspec_arguments("az", {"fs.wasb.account.key.acc.blob.core.windows.net": "k"}) == {"account_name": "acc", "account_key": "k"}
