#!/usr/bin/python3
"""A disk with sectors that cannot be read: a file of FUSE, whose reads fail where a test says so, below a loop device with
ext4. Programs see what they see on a failing disk: EIO from read, SIGBUS in a mapping.

    bad_disk.py IMAGE AT BAD: serves IMAGE at the file AT until it is unmounted. BAD has a line "offset bytes" for each bad part."""
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import time

IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, ACCESS, DESTROY = 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 34, 38
WITHOUT_ANSWER = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET
EIO, ENOSYS, MAX_WRITE = 5, 38, 1 << 20


def attributes(image):
    size = os.fstat(image).st_size
    return struct.pack("<QII" + "Q" * 6 + "I" * 10, 3600, 0, 0, 1, size, size // 512, 0, 0, 0, 0, 0, 0, 0o100600, 1, 0, 0, 0, 4096, 0)


def is_bad(file, offset, size):
    ranges = [line.split() for line in pathlib.Path(file).read_text().splitlines()]
    return any(offset < int(at) + int(length) and int(at) < offset + size for at, length in ranges)


def answer(image, bad, opcode, body):
    """Returns the error and the bytes of the answer."""
    if opcode == INIT:
        return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 16, 0, 16, 12, MAX_WRITE, 1, 0, 0, 0)
    if opcode in (GETATTR, SETATTR):
        return 0, attributes(image)
    if opcode == OPEN:
        return 0, struct.pack("<QII", 1, 0, 0)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return (EIO, b"") if is_bad(bad, offset, size) else (0, os.pread(image, size, offset))
    if opcode == WRITE:
        _, offset, size = struct.unpack_from("<QQI", body)
        return 0, struct.pack("<II", os.pwrite(image, body[40:40 + size], offset), 0)
    if opcode == STATFS:
        return 0, struct.pack("<QQQQQIIII24x", 1 << 20, 1 << 20, 1 << 20, 1, 1, 4096, 255, 4096, 0)
    return (0, b"") if opcode in (RELEASE, FSYNC, FLUSH, ACCESS, DESTROY) else (ENOSYS, b"")


def serve(image_path, at, bad):
    image = os.open(image_path, os.O_RDWR)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=100000,user_id=0,group_id=0,allow_other"
    if ctypes.CDLL(None, use_errno=True).mount(b"bad-disk", at.encode(), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "cannot mount")
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(fuse, MAX_WRITE + 4096)
        except OSError:
            return  # unmounted
        _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
        if opcode in WITHOUT_ANSWER:
            continue
        error, body = answer(image, bad, opcode, request[IN_HEADER.size:])
        try:
            os.write(fuse, OUT_HEADER.pack(OUT_HEADER.size + len(body), -error, unique) + body)
        except FileNotFoundError:
            pass  # the request was interrupted


class BadDisk:
    """In the directory `dir` of a scratch directory. Raises Unavailable where there is no FUSE, no loop device or no root."""

    class Unavailable(Exception):
        pass

    def __init__(self, scratch, megabytes=64):
        self.image, self.file, self.bad, self.dir = (scratch / name for name in ("image", "disk", "bad", "mounted"))
        self.file.touch()
        self.bad.touch()
        self.dir.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(megabytes << 20)
        self.run("mkfs.ext4", "-q", "-m", "0", "-b", "4096", str(self.image))
        self.process = subprocess.Popen([sys.executable, __file__, str(self.image), str(self.file), str(self.bad)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "mounted\n":
            raise self.Unavailable(self.process.communicate()[1])

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise self.Unavailable(f"{command}: {done.stderr}")
        return done.stdout

    def mount(self, *options):
        self.run("mount", "-o", ",".join(("loop", *options)), str(self.file), str(self.dir))

    def unmount(self):
        """Writes everything, and forgets what was cached."""
        self.run("umount", str(self.dir))
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1\n")

    def spoil(self, needle, most=1000):
        """The sectors with these bytes cannot be read from the next mount on. Returns how many there are."""
        data, at, found = self.image.read_bytes(), -1, 0
        with open(self.bad, "a") as f:
            while found < most and (at := data.find(needle, at + 1)) >= 0:
                f.write(f"{at & ~511} 512\n")
                found += 1
        return found

    def close(self):
        for path in (self.dir, self.file):
            for _ in range(50):
                if not os.path.ismount(path) and subprocess.run(["mountpoint", "-q", str(path)], check=False).returncode != 0:
                    break
                subprocess.run(["umount", "-l", str(path)], capture_output=True, check=False)
                time.sleep(0.1)
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    serve(*sys.argv[1:])
