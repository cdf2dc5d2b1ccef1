"""A certificate that signs itself: the server's, the client's, and the authority of both."""
import dataclasses
import pathlib
import subprocess


@dataclasses.dataclass
class Identity:
    cert: str
    key: str


def make(directory):
    """Of an administrator of Kubernetes, valid for 127.0.0.1."""
    identity = Identity(str(pathlib.Path(directory, "own.pem")), str(pathlib.Path(directory, "own.key")))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-keyout", identity.key, "-out", identity.cert, "-subj", "/O=system:masters/CN=bench",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, stderr=subprocess.DEVNULL)
    return identity
