#!/usr/bin/python3
"""Errors that keep a server from starting are reported with advice, and ordinary starts log no warnings."""
import json
import os
import resource
import socket
import subprocess
import unittest
import urllib.request

from server import SUBJECT, WAIT_SECONDS, LiveTest, free_port, only_vigil


@only_vigil
class Refusals(LiveTest):
    def refused(self, *parts, **options):
        server = self.server(**options)
        code, log = server.refuse()
        self.assertEqual(code, 1, log)
        last = json.loads(server.lines[-1])
        self.assertEqual(last["level"], "fatal")
        self.assertNotIn(": vigil: ", last["error"])  # the prefix of messages for clients
        for part in parts:
            self.assertIn(part, last["error"])

    def test_port_in_use_is_refused_with_advice(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused(f"listen tcp 127.0.0.1:{port}: bind: address already in use",
                         "stop it or choose another", port=port)

    def test_address_of_another_machine(self):
        self.refused("bind: cannot assign requested address", "no interface of this machine",
                     listen="http://192.0.2.1:2379")

    def test_data_directory_that_is_a_file(self):
        path = self.scratch / "file"
        path.write_text("x")
        self.refused(f"{path} is not a directory", "--data-dir", directory=path)

    @unittest.skipUnless(os.geteuid() == 0, "other users get a message about permissions")
    def test_data_directory_that_cannot_be_created(self):
        self.refused("cannot make the data directory /proc/vigil: No such file or directory",
                     "--data-dir", directory="/proc/vigil")

    def test_data_directory_in_another_format(self):
        path = self.scratch / "newer"
        path.mkdir(mode=0o700)
        (path / "FORMAT").write_text("vigil data directory, format 99, little endian\n")
        self.refused(f"{path} was written in another format", "format 99",
                     "version of Vigil that wrote it", "vigil snapshot restore", directory=path)

    def test_lock_that_cannot_be_acquired(self):
        path = self.scratch / "odd"
        (path / "LOCK").mkdir(parents=True)
        self.refused(f"cannot lock {path}/LOCK: input or output failed", directory=path)

    def test_invalid_setting(self):
        self.refused("--advertise-client-urls", args=["--advertise-client-urls=ftp://x:1"])

    def test_under_the_name_etcd_errors_have_etcds_wording(self):
        link = self.scratch / "etcd"
        link.symlink_to(SUBJECT)
        done = subprocess.run([str(link), "--listen-client-urls=ftp://x:1"], capture_output=True,
                              text=True, timeout=60, check=False)
        last = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((done.returncode, last["level"], last["msg"]),
                         (1, "warn", "failed to verify flags"))

    @unittest.skipUnless(os.geteuid() == 0, "changing owners needs root")
    def test_data_directory_of_another_user(self):
        path = self.scratch / "theirs"
        path.mkdir(mode=0o755)
        os.chown(path, 65534, 65534)
        self.scratch.chmod(0o755)
        self.refused("no permission to use", "belongs to nobody", "runs as daemon", "chown",
                     directory=path, wrap=["setpriv", "--reuid=daemon", "--clear-groups"])

    @unittest.skipUnless(os.geteuid() == 0, "changing owners needs root")
    def test_files_of_another_user_in_the_data_directory(self):
        path = self.scratch / "ours"
        path.mkdir(mode=0o700)
        (path / "LOCK").touch(mode=0o600)
        os.chown(path, 1, 1)
        self.scratch.chmod(0o755)
        self.refused("no permission to use", "LOCK", "belongs to root", "runs as daemon", "chown -R",
                     directory=path, wrap=["setpriv", "--reuid=daemon", "--clear-groups"])

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_read_only_disk(self):
        path = self.scratch / "disk"
        path.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", str(path)],
                                 capture_output=True, check=False)
        if mounted.returncode:
            self.skipTest("may not mount here")
        self.addCleanup(subprocess.run, ["umount", str(path)], check=True)
        self.refused("mounted read-only", directory=path / "data")

    def test_log_file_that_cannot_be_created(self):
        self.refused("cannot log to /no/such/dir/log: No such file", args=["--log-outputs=/no/such/dir/log"])

    def test_invalid_log_rotation(self):
        self.refused("requires a single file path", args=["--enable-log-rotation"])


@only_vigil
class Starts(LiveTest):
    def test_missing_directories_are_created_private(self):
        path = self.scratch / "a" / "b" / "c"
        self.serving(directory=path)
        self.assertEqual(path.stat().st_mode & 0o777, 0o700)

    def test_missing_directories_of_a_relative_path_are_created(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.scratch)
        self.serving(directory="a/b")
        self.assertTrue((self.scratch / "a/b/FORMAT").exists())

    def test_automatic_port_is_logged_and_advertised(self):
        command = [SUBJECT, "serve", "--data-dir", str(self.scratch / "data"),
                   "--listen-client-urls", "http://127.0.0.1:0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        lines = []
        for line in process.stderr:
            lines.append(json.loads(line))
            if "traffic" in lines[-1]:
                break
        url = "http://" + lines[-1]["address"]
        request = urllib.request.Request(url + "/v3/cluster/member/list", b"{}")
        members = json.load(urllib.request.urlopen(request))["members"]
        self.assertEqual(members[0]["clientURLs"], [url])
        process.terminate()
        lines += [json.loads(line) for line in process.stderr]
        advertised = {line["msg"]: line["advertise-client-urls"] for line in lines
                      if line.get("advertise-client-urls")}
        self.assertEqual(advertised, dict.fromkeys(
            ("now serving peer/client/metrics", "closing etcd server", "closed etcd server"), [url]))

    def open_file_warnings(self, hard, *args):
        """The log lines about open files of a server with this hard limit."""
        def limits():
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        server = self.serving(limits=limits, args=args, directory=self.scratch / f"data{len(args)}")
        return [json.loads(line) for line in server.lines if "raise LimitNOFILE" in line]

    def test_low_limit_of_open_files_is_logged(self):
        warnings = self.open_file_warnings(300)
        self.assertEqual((warnings[0]["open-files"], warnings[0]["max-connections"]), (300, 65536))

    def test_fewer_open_files_than_requested_connections_are_logged(self):
        self.assertEqual(self.open_file_warnings(10_000), [])
        warnings = self.open_file_warnings(10_000, "--max-connections=65536")
        self.assertEqual((warnings[0]["open-files"], warnings[0]["max-connections"]), (10_000, 65536))

    def test_ordinary_start_logs_no_warning(self):
        server = self.serving()
        warned = [line for line in server.lines if '"level":"info"' not in line]
        self.assertEqual(warned, [])

    def test_simple_tokens_cause_a_warning_when_authentication_is_enabled(self):
        server = self.serving()
        endpoint = ["etcdctl", "--endpoints", server.url]
        for words in (["user", "add", "root:x"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
            subprocess.run(endpoint + words, env=dict(os.environ, ETCDCTL_API="3"), check=True,
                           capture_output=True, timeout=60)
        server.stop()
        server.start()
        self.assertEqual(sum("simple token is not cryptographically signed" in line
                             for line in server.lines), 1)

    def test_log_files_are_reopened_on_a_signal(self):
        import signal
        log, moved = self.scratch / "v.log", self.scratch / "v.log.1"
        server = self.serving(args=[f"--log-outputs=stderr,{log}"])
        log.rename(moved)
        os.kill(server.pid, signal.SIGUSR1)
        self.eventually(lambda: log.exists() and "reopened the log files" in log.read_text())
        self.assertIn("ready to serve client requests", moved.read_text())
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)

    def test_server_in_front_of_a_cluster_starts_without_it(self):
        path, dead = str(self.scratch / "notify"), f"http://127.0.0.1:{free_port()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(WAIT_SECONDS)
            server = self.server(args=["--upstream-endpoints", dead], env={"NOTIFY_SOCKET": path}).begin()
            self.assertEqual(manager.recv(100), b"READY=1")
            with urllib.request.urlopen(server.url + "/livez", timeout=WAIT_SECONDS) as answer:
                self.assertEqual((answer.status, answer.read()), (200, b"ok\n"))
            server.stop()
            self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_service_manager_is_notified_of_every_step(self):
        path = str(self.scratch / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(WAIT_SECONDS)
            server = self.server(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}).start()
            self.assertEqual(manager.recv(100), b"READY=1")
            self.assertEqual(manager.recv(100), b"WATCHDOG=1")
            os.kill(server.pid, 10)  # SIGUSR1
            messages = [manager.recv(100)]
            while not messages[-1].startswith(b"RELOADING=1\nMONOTONIC_USEC="):
                self.assertEqual(messages[-1], b"WATCHDOG=1")
                messages.append(manager.recv(100))
            self.assertEqual(manager.recv(100), b"READY=1")
            server.stop()
            while messages[-1] != b"STOPPING=1":
                messages.append(manager.recv(100))


if __name__ == "__main__":
    unittest.main()
