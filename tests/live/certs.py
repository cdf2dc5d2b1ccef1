"""Certificates for live tests, made by the openssl program: an authority and the identities that it signs."""
import pathlib
import subprocess
import time


def openssl(*args, text=None):
    done = subprocess.run(["openssl", *args], input=text, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"openssl {args}: {done.stderr}")
    return done.stdout


class Identity:
    """A certificate and its key, as files."""

    def __init__(self, cert, key):
        self.cert, self.key = str(cert), str(key)

    def serial(self):
        return openssl("x509", "-in", self.cert, "-noout", "-serial").strip().split("=")[1]


class Authority(Identity):
    def __init__(self, directory, name="ca"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        super().__init__(self.directory / f"{name}.pem", self.directory / f"{name}.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", self.key, "-out", self.cert, "-days", "30", "-subj", f"/CN={name}")
        self.count = int(time.time()) * 1000

    def sign(self, name, cn=None, names="DNS:localhost,IP:127.0.0.1",
             usage="serverAuth,clientAuth", days=30, rsa=False, groups=(), uid=()):
        """Signs a certificate and writes it to files called name; days below 0 make one that has expired. uid: Kubernetes' attribute
        of that name, or a list of several."""
        identity = Identity(self.directory / f"{name}.pem", self.directory / f"{name}.key")
        algorithm = ("rsa:2048",) if rsa else ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        config = self.directory / "names.cnf"
        config.write_text("oid_section=oids\n[oids]\nkubernetesUid=1.3.6.1.4.1.57683.2\n[req]\ndistinguished_name=d\n[d]\n")
        uids = [uid] if isinstance(uid, str) else uid
        request = openssl("req", "-utf8", "-config", str(config), "-newkey", *algorithm, "-nodes", "-keyout", identity.key,
                          "-subj", "".join(f"/O={group}" for group in groups) + f"/CN={cn or name}"
                          + "".join(f"/kubernetesUid={one}" for one in uids))
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"extendedKeyUsage={usage}\n" +
                              (f"subjectAltName={names}\n" if names else ""))
        self.count += 1
        if days >= 0:
            openssl("x509", "-req", "-CA", self.cert, "-CAkey", self.key, "-set_serial",
                    str(self.count), "-days", str(days), "-extfile", str(extensions), "-out",
                    identity.cert, text=request)
        else:
            self.ca("-batch", "-notext", "-in", "/dev/stdin", "-out", identity.cert, "-extfile",
                    str(extensions), "-startdate", "20200101000000Z", "-enddate",
                    "20200201000000Z", text=request)
        return identity

    def ca(self, *args, text=None):
        """Runs openssl ca, which keeps a small database of the certificates that it has signed."""
        base = self.directory / f"{self.name}.db"
        if not base.exists():
            base.write_text("")
            (self.directory / f"{self.name}.srl").write_text("1000\n")
        config = self.directory / f"{self.name}.cnf"
        config.write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={base}\nserial={self.directory}/{self.name}.srl\n"
            f"new_certs_dir={self.directory}\ncertificate={self.cert}\nprivate_key={self.key}\n"
            "default_md=sha256\npolicy=p\ndefault_crl_days=30\n"
            f"crlnumber={self.directory}/{self.name}.srl\ncrl_extensions=x\n[x]\n"
            "authorityKeyIdentifier=keyid\n[p]\ncommonName=supplied\n")
        openssl("ca", "-config", str(config), *args, text=text)

    def revoke(self, path, *identities):
        """Revokes the identities and writes the list of all revoked certificates as DER, the format that etcd reads."""
        for identity in identities:
            self.ca("-revoke", identity.cert)
        pem = self.directory / f"{self.name}.crl.pem"
        self.ca("-gencrl", "-out", str(pem))
        openssl("crl", "-in", str(pem), "-outform", "DER", "-out", str(path))
        return str(path)
