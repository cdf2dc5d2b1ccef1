"""A program that answers requests as tests/oracle.h says."""
import struct
import subprocess


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, letter, *texts):
        message = letter.encode() + b"".join(struct.pack(">I", len(t)) + t for t in texts)
        self.process.stdin.write(message)
        self.process.stdin.flush()
        sign, length = struct.unpack(">cI", self.process.stdout.read(5))
        return sign == b"+", self.process.stdout.read(length)
