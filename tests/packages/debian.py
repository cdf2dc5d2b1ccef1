"""A small Debian 12 in a directory, in which packages are installed and programs run with chroot.

It is downloaded once, from the machine's own package sources, and kept in build/deb; downloaded packages are kept there
as well. A command runs in namespaces of its own: what it mounts is gone, and what it started is ended, when it ends.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEB = ROOT / "build/deb"
BASE = DEB / "debian.tar"
ARCHIVES = DEB / "archives"
SOURCES = [path for path in (pathlib.Path("/etc/apt/sources.list.d/debian.sources"), pathlib.Path("/etc/apt/sources.list"))
           if path.exists()]
SECONDS_MAX = 1800
# In the new namespaces: devices, processes and downloads; then the command.
ENTER = """
mount --make-rprivate /
cd "$0"
if [ -d usr/bin ] && [ -d proc ]; then
    mount -t proc proc proc
    for device in null zero full random urandom; do
        [ ! -d dev ] || { : >>dev/$device; mount --bind /dev/$device dev/$device; }
    done
fi
[ ! -d var/cache/apt/archives ] || mount --bind "$ARCHIVES" var/cache/apt/archives
exec chroot "$@"
"""


def run(*command, **options):
    options.setdefault("timeout", SECONDS_MAX)
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))[:300]} ended with {done.returncode}:\n{done.stdout[-6000:]}"
    return done.stdout


def command_in(root, command, *flags):
    """The words that run a command with root as its root directory, as the first process of its own namespace."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-ec", ENTER, str(root), *flags, str(root), *command]


def environment():
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
            "ARCHIVES": str(ARCHIVES), **kept}


def make_base():
    """Everything that is essential, apt, and the part of systemd that makes users: all of it would leave much behind."""
    assert os.geteuid() == 0, "these tests make root directories and need root"
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    (ARCHIVES / "partial").mkdir(exist_ok=True)
    if not BASE.exists():
        new = BASE.with_suffix(".new.tar")
        run("mmdebstrap", "--mode=root", "--variant=apt", "--skip=check/qemu", "--include=systemd-standalone-sysusers",
            "bookworm", new, *SOURCES[:1])
        new.rename(BASE)


class Debian:
    """A copy of that Debian."""

    def __init__(self):
        make_base()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="vigil-debian-"))
        run("tar", "-C", self.root, "--exclude=./dev/*", "-xf", BASE)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        self.run("apt-get", "-q", "update")

    def remove(self):
        shutil.rmtree(self.root)

    def run(self, *command, directory="/", alone=False):
        """alone: in a network that has only itself, so that no port is in use."""
        words = command_in(self.root, ["env", "-C", directory, *command])
        network = ["unshare", "--net", "/bin/sh", "-ec", 'ip link set lo up; exec "$@"', "sh"] if alone else []
        return run(*network, *words, env=environment())

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", "APT::Sandbox::User=root", *words)

    def install(self, *packages):
        """Installs files of packages, or packages from the registry."""
        for package in packages:
            if os.sep in str(package):
                shutil.copy(package, self.root / "tmp")
        return self.apt("install", *(f"/tmp/{pathlib.Path(p).name}" if os.sep in str(p) else p for p in packages))

    def files(self):
        """Every path with its kind, without what packages change by being installed at all."""
        found = set()
        for folder, folders, files in os.walk(self.root):
            below = pathlib.Path(folder).relative_to(self.root)
            found |= {str(below / name) for name in folders + files}
        return found
