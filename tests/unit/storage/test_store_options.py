import pytest

from paimon_py import OptionError
from paimon_py.storage.hdfs_options import hdfs_arguments
from paimon_py.storage.open import open_store
from paimon_py.storage.store_options import FAMILIES, KERBEROS, check_store_options


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


CHECKED = {
    "s3": """
        s3.acces-key=s3.access-key s3.access_key=s3.access-key s3.Access-Key=s3.access-key s3.access.key.id=s3.access-key
        s3.secret-access-key=s3.secret-key s3.secretkey=s3.secret-key s3.sesion.token=s3.session.token s3.token=s3.session.token
        s3.endpoint-url=s3.endpoint s3.enpoint=s3.endpoint s3.path-style=s3.path.style.access s3.pathstyle.access=s3.path.style.access
        s3.aws.region=s3.region s3.ssl.enabled=s3.connection.ssl.enabled s3.profile=s3.auth.profile.name s3.role.arn=s3.assumed.role.arn
        s3.assume.role.arn=s3.assumed.role.arn s3.requester-pays=s3.requester.pays.enabled s3.encryption.kms.key=s3.encryption.key
        fs.s3.access.key=s3.access-key fs.s3n.secret.key=s3.secret-key S3.access-key=s3.access-key AWS_ACCESS_KEY_ID=s3.access-key
        aws_secret_access_key=s3.secret-key AWS_REGION=s3.region s3-access-key=s3.access-key s3_secret_key=s3.secret-key""",
    "gs": """
        fs.gs.auth.service.account.json.keyfil=fs.gs.auth.service.account.json.keyfile gs.keyfile=gs.auth.service.account.json.keyfile
        fs.gs.auth.service.account.keyfile=fs.gs.auth.service.account.json.keyfile fs.gs.projectid=fs.gs.project.id gs.project=gs.project.id
        fs.gs.auth.service.account.json=fs.gs.auth.service.account.json.keyfile fs.gs.project-di=fs.gs.project.id gs.project_id=gs.project.id
        fs.gs.auth.typ=fs.gs.auth.type fs.gs.authtype=fs.gs.auth.type fs.gs.auth=fs.gs.auth.type fs.gs.Auth.Type=fs.gs.auth.type
        fs.gs.storage.root.uri=fs.gs.storage.root.url fs.gs.endpoint=fs.gs.storage.root.url gcs.project.id=fs.gs.project.id
        fs.gcs.auth.type=fs.gs.auth.type FS.GS.auth.type=fs.gs.auth.type fs_gs_project_id=fs.gs.project.id
        google.cloud.auth.service.account.json.keyfile=fs.gs.auth.service.account.json.keyfile fs.gs.auht.type=fs.gs.auth.type
        GOOGLE_APPLICATION_CREDENTIALS=fs.gs.auth.service.account.json.keyfile""",
    "azure": """
        fs.azure.acount.key.a.dfs.core.windows.net=fs.azure.account.key fs.azure.account.kye.a.dfs.core.windows.net=fs.azure.account.key
        fs.azure.accountkey.a.blob.core.windows.net=fs.azure.account.key fs.azure.account_key=fs.azure.account.key fs.azure.key=fs.azure.account.key
        fs.azure.sas.token=fs.azure.sas.fixed.token fs.azure.sas.fixed.tokn.a.dfs.core.windows.net=fs.azure.sas.fixed.token
        fs.azure.sas.a.dfs.core.windows.net=fs.azure.sas.fixed.token fs.azure.account.oauth2.client.secrt=fs.azure.account.oauth2.client.secret
        fs.azure.account.oauth.client.id=fs.azure.account.oauth2.client.id fs.azure.account.oauth2.clientid=fs.azure.account.oauth2.client.id
        fs.azure.account.oauth2.client.endpont=fs.azure.account.oauth2.client.endpoint fs.azure.account.auth.typ=fs.azure.account.auth.type
        fs.azure.account.oauth2.provider.type=fs.azure.account.oauth.provider.type fs.azure.account.oauth.provider=fs.azure.account.oauth.provider.type
        abfs.account.key=fs.azure.account.key fs.abfs.account.key.a.dfs.core.windows.net=fs.azure.account.key wasb.account.key=fs.azure.account.key
        fs.wasbs.account.key=fs.azure.account.key azure.storage.account.key=azure.account.key AZURE_STORAGE_ACCOUNT_KEY=fs.azure.account.key
        fs.Azure.account.key=fs.azure.account.key""",
    "oss": """
        fs.oss.accesKeyId=fs.oss.accessKeyId fs.oss.access.key.id=fs.oss.accessKeyId fs.oss.access-key-id=fs.oss.accessKeyId
        fs.oss.accessKey=fs.oss.accessKeyId fs.oss.accessKeySecrt=fs.oss.accessKeySecret fs.oss.secret=fs.oss.accessKeySecret
        fs.oss.secretKey=fs.oss.accessKeySecret fs.oss.endpont=fs.oss.endpoint fs.oss.end-point=fs.oss.endpoint
        fs.oss.security.token=fs.oss.securityToken fs.oss.token=fs.oss.securityToken fs.oss.cname=fs.oss.cname.enabled
        fs.oss.cname-enabled=fs.oss.cname.enabled fs.oss.sld=fs.oss.sld.enabled fs.oss.connection.secure=fs.oss.connection.secure.enabled
        fs.oss.server.side.encryption=fs.oss.server-side-encryption fs.oss.sse=fs.oss.server-side-encryption oss.accessKeyId=fs.oss.accessKeyId
        fs.aliyun.endpoint=fs.oss.endpoint aliyun.oss.endpoint=fs.oss.endpoint FS.OSS.endpoint=fs.oss.endpoint
        OSS_ACCESS_KEY_ID=fs.oss.accessKeyId""",
    "hdfs": """
        hadoop-conf-dr=hadoop-conf-dir hadoop.conf.dir=hadoop-conf-dir hadoop-confdir=hadoop-conf-dir hadoop_conf_dir=hadoop-conf-dir
        HADOOP_CONF_DIR=hadoop-conf-dir hadoop-conf-dirs=hadoop-conf-dir hadop-conf-dir=hadoop-conf-dir hadoop-conf.dir=hadoop-conf-dir
        hadoop-cnof-dir=hadoop-conf-dir hadoopconfdir=hadoop-conf-dir haddop-conf-dir=hadoop-conf-dir
        security.kerberos.login.principle=security.kerberos.login.principal security.kerberos.login.principl=security.kerberos.login.principal
        security.kerberos.login.Principal=security.kerberos.login.principal security.kerberos.login.keytb=security.kerberos.login.keytab
        security.kerberos.login.key-tab=security.kerberos.login.keytab security.kerberos.keytab=security.kerberos.login.keytab
        security.kerberos.principal=security.kerberos.login.principal security.kerberos.login.use.ticket.cache=security.kerberos.login.use-ticket-cache
        security.kerberos.login.useTicketCache=security.kerberos.login.use-ticket-cache""",
}  # fmt: skip
"""What people write, and what they mean."""


@pytest.mark.parametrize("kind", CHECKED)
def test_common_spellings_of_other_libraries_are_refused_with_the_right_name(kind):
    pairs = [pair.split("=") for pair in CHECKED[kind].split()]
    assert len(pairs) >= 20
    for name, meant in pairs:
        with pytest.raises(OptionError, match=f"did you mean '{meant}'") as caught:
            check_store_options({name: "sesame"})
        assert "sesame" not in str(caught.value) and caught.value.option == name
        check_store_options({meant: "x"})


def test_without_a_ticket_cache_a_keytab_is_needed():
    with pytest.raises(OptionError, match="without security.kerberos.login.keytab the ticket cache is used"):
        hdfs_arguments({"security.kerberos.login.use-ticket-cache": "false"})
    assert hdfs_arguments({"security.kerberos.login.use-ticket-cache": "true"}) == {}


@pytest.mark.parametrize("name", ["s3.foo", "fs.s3a.bucket.mine.endpoint", "fs.s3a.proxy.host", "fs.oss.credentials.provider", "fs.gs.encryption.key", "fs.azure.client.correlationid"])  # fmt: skip
def test_an_option_that_is_unknown_is_refused_with_the_known_ones(name):
    with pytest.raises(OptionError, match="the options for .* are .*, "):
        open_store("/w", {name: "x"})


def test_options_in_use_pass_in_every_spelling_and_so_does_tuning():
    for family in FAMILIES:
        for prefix in family.prefixes:
            for name in family.used:
                spelled = {name, name.lower()} if family.read is str.lower else {name, name.replace("-", "."), name.replace(".", "-")}
                check_store_options({prefix + each: "x" for each in (spelled if family is not KERBEROS else {name})})
    check_store_options({
        "fs.s3a.threads.max": "4", "fs.s3a.connection.maximum": "9", "fs.gs.block.size": "1", "fs.oss.multipart.upload.size": "1",
        "fs.azure.account.key.acc.dfs.core.windows.net": "k", "fs.azure.account.auth.type.acc.dfs.core.windows.net": "OAuth",
        "fs.azure.write.request.size": "1", "fs.local.fsync": "true", "bucket": "4", "my.own": "x", "hadoop.fs.foo": "x",
    })  # fmt: skip
