"""A small client for live tests, over the C core's gRPC. It puts and gets, and remembers the acknowledged writes."""
import grpc

import protobuf as pb

KV = "/etcdserverpb.KV/"


class Client:
    def __init__(self, port):
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1),
                                          ("grpc.max_receive_message_length", -1)])
        self.acked = {}  # key: (value, revision)

    def call(self, method, body, timeout=60):
        return pb.parse(self.channel.unary_unary(KV + method)(body, timeout=timeout))

    def put(self, key, value, timeout=60):
        revision = pb.parse(self.call("Put", pb.put(key, value), timeout)[1][0])[3][0]
        self.acked[key] = (value, revision)
        return revision

    def get(self, key, revision=0):
        """Value and mod revision, or None."""
        answer = self.call("Range", pb.range_of(key, **({"f4": revision} if revision else {})))
        if 2 not in answer:
            return None
        kv = pb.parse(answer[2][0])
        return kv.get(5, [b""])[0], kv[3][0]

    def revision(self):
        return pb.parse(self.call("Range", pb.range_of(b"x"))[1][0])[3][0]

    def check_acked(self, test, acked=None):
        """Checks that every acknowledged write can be read at its revision."""
        for key, (value, revision) in (acked or self.acked).items():
            found = self.get(key, revision)
            test.assertIsNotNone(found, f"{key} at {revision} is missing")
            test.assertEqual(found[1], revision)
            test.assertTrue(found[0] == value, f"{key} at {revision} has another value")

    def close(self):
        self.channel.close()
