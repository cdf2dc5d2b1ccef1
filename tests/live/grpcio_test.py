#!/usr/bin/python3
"""Another gRPC implementation: the C core, in Debian's python3-grpcio."""
import concurrent.futures
import queue
import unittest

import grpc

import h2raw
import protobuf as pb
from server import LiveTest

KV = "/etcdserverpb.KV/"


class Grpcio(LiveTest):
    def setUp(self):
        super().setUp()
        self.vigil = self.serving()
        self.channel = self.connect()

    def connect(self, **options):
        channel = grpc.insecure_channel(f"127.0.0.1:{self.vigil.port}", **options)
        self.addCleanup(channel.close)
        return channel

    def call(self, method, body, channel=None, timeout=60, **options):
        return (channel or self.channel).unary_unary(method)(body, timeout=timeout, **options)

    def error(self, method, body, **options):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(method, body, **options)
        return caught.exception.code(), caught.exception.details()

    def test_put_and_range(self):
        header = pb.parse(pb.parse(self.call(KV + "Put", pb.put(b"a", b"1")))[1][0])
        self.assertEqual(header[3], [2])
        answer = pb.parse(self.call(KV + "Range", pb.range_of(b"a")))
        self.assertEqual(answer[4], [1])
        self.assertEqual(pb.parse(answer[2][0]), {1: [b"a"], 2: [2], 3: [2], 4: [1], 5: [b"1"]})

    def test_compressed_requests(self):
        packing = self.connect(compression=grpc.Compression.Gzip)
        value = b"x" * 1_000_000
        self.call(KV + "Put", pb.put(b"packed", value), channel=packing)
        answer = pb.parse(self.call(KV + "Range", pb.range_of(b"packed"), channel=packing))
        self.assertEqual(pb.parse(answer[2][0])[5], [value])
        # The limit applies to the decompressed size, which is a thousand times larger.
        self.assertEqual(self.error(KV + "Put", pb.put(b"bomb", b"x" * 60_000_000), channel=packing),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED,
                          "grpc: received message after decompression larger than max 2097152"))
        self.assertEqual(self.error(KV + "Put", pb.put(b"large", b"x" * 1_700_000), channel=packing)[0],
                         grpc.StatusCode.INVALID_ARGUMENT)
        watch = packing.stream_stream("/etcdserverpb.Watch/Watch")
        requests = queue.Queue()
        requests.put(pb.message(f1=pb.message(f1=b"packed" * 1000)))
        responses = watch(iter(requests.get, None), timeout=60)
        self.assertEqual(pb.parse(next(responses))[3], [1])
        requests.put(None)
        responses.cancel()

    def test_range_stream(self):
        for i in range(100):
            self.call(KV + "Put", pb.put(b"k%03d" % i, b"v" * 1000))
        chunks = list(self.channel.unary_stream(KV + "RangeStream")(pb.range_of(b"k", b"l"), timeout=60))
        inner = [pb.parse(pb.parse(c)[1][0]) for c in chunks]
        self.assertEqual(sum(len(c.get(2, [])) for c in inner), 100)
        self.assertEqual([c.get(4) for c in inner[:-1]], [None] * (len(inner) - 1))
        self.assertEqual(inner[-1][4], [100])

    def test_errors_carry_code_and_text(self):
        self.assertEqual(self.error(KV + "Put", pb.put(b"", b"1")),
                         (grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: key is not provided"))
        self.assertEqual(self.error(KV + "Range", pb.range_of(b"a", f4=99)),
                         (grpc.StatusCode.OUT_OF_RANGE,
                          "etcdserver: mvcc: required revision is a future revision"))
        self.assertEqual(self.error("/etcdserverpb.KV/Nothing", b"")[0], grpc.StatusCode.UNIMPLEMENTED)

    def test_unknown_fields_are_skipped(self):
        body = pb.put(b"a", b"1") + pb.field(99, b"later") + pb.field(100, 7)
        self.call(KV + "Put", body)
        self.assertEqual(pb.parse(self.call(KV + "Range", pb.range_of(b"a") + pb.field(77, 1)))[4], [1])

    def test_malformed_message_is_an_error(self):
        for body in (b"\xff", b"\x0a\x05ab", b"\x0a", b"\x0b\x0b\x0b", b"\x08" + b"\xff" * 11):
            self.assertEqual(self.error(KV + "Put", body)[0], grpc.StatusCode.INTERNAL, body)

    def test_last_of_a_repeated_field_counts(self):
        self.call(KV + "Put", pb.message(f1=[b"x", b"a"], f2=[b"0", b"1"]))
        self.assertEqual(pb.parse(self.call(KV + "Range", pb.range_of(b"a")))[4], [1])

    def test_many_channels_at_once(self):
        def work(n):
            channel = self.connect(options=[("grpc.use_local_subchannel_pool", 1)])
            for i in range(20):
                self.call(KV + "Put", pb.put(b"c%d" % n, b"%d" % i), channel)
            return pb.parse(pb.parse(self.call(KV + "Range", pb.range_of(b"c%d" % n), channel))[2][0])[4]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertEqual(list(pool.map(work, range(16))), [[20]] * 16)

    def test_watch(self):
        requests = queue.Queue()
        self.addCleanup(requests.put, None)
        answers = self.channel.stream_stream("/etcdserverpb.Watch/Watch")(iter(requests.get, None), timeout=60)
        requests.put(pb.message(f1=pb.message(f1=b"k", f2=b"l", f6=1)))  # create_request, prev_kv
        created = pb.parse(next(answers))
        self.assertEqual((created.get(2), created[3]), (None, [1]))  # id 0, created
        self.call(KV + "Put", pb.put(b"k1", b"1"))
        self.call(KV + "Put", pb.put(b"k1", b"2"))
        first, second = (pb.parse(pb.parse(next(answers))[11][0]) for _ in range(2))
        self.assertEqual(pb.parse(first[2][0]), {1: [b"k1"], 2: [2], 3: [2], 4: [1], 5: [b"1"]})
        self.assertNotIn(3, first)
        self.assertEqual(pb.parse(second[3][0]), pb.parse(first[2][0]))  # the previous value
        answers.cancel()
        self.call(KV + "Put", pb.put(b"k1", b"3"))

    def test_health_service(self):
        answer = self.call("/grpc.health.v1.Health/Check", b"")
        self.assertEqual(pb.parse(answer), {1: [1]})

    def test_tight_deadline_ends_the_call_not_the_connection(self):
        for _ in range(50):
            try:
                self.channel.unary_unary(KV + "Put")(pb.put(b"a", b"1"), timeout=0.0005)
            except grpc.RpcError as e:
                self.assertEqual(e.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.call(KV + "Put", pb.put(b"a", b"2"))

    def kinds_until_the_end(self, timeout):
        """The kinds of the frames that answer a large read with this deadline, of a client that gives no more window."""
        kinds = []
        with h2raw.Connection(self.vigil.port, timeout=60) as raw:
            raw.send(h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS, 1,
                                 h2raw.request_headers(KV + "Range", [("grpc-timeout", timeout)])) +
                     h2raw.frame(h2raw.DATA, h2raw.END_STREAM, 1,
                                 pb.grpc_frame(pb.range_of(b"large", b"largf"))))
            for kind, flags, stream, payload in raw.frames():
                if stream == 1:
                    kinds.append(kind)
                if kind == h2raw.RST_STREAM:
                    self.assertEqual(payload, (8).to_bytes(4, "big"))  # CANCEL
                if kind == h2raw.RST_STREAM or (kind == h2raw.HEADERS and flags & h2raw.END_STREAM):
                    break
        return kinds

    def test_deadline_within_a_large_answer_is_a_deadline(self):
        """A client without a flow-control window has received half of the answer at its deadline. Trailers after half a
        message would be a protocol error, so the stream is reset."""
        for i in range(20):
            self.call(KV + "Put", pb.put(b"large%02d" % i, b"x" * 1_000_000))
        for timeout in ("300m", "3S", "30S"):  # longer if a slow machine does not begin its answer by then
            kinds = self.kinds_until_the_end(timeout)
            if h2raw.DATA in kinds:
                break
        self.assertEqual((kinds.count(h2raw.HEADERS), kinds[-1]), (1, h2raw.RST_STREAM))
        unlimited = self.connect(options=[("grpc.max_receive_message_length", -1)])
        for timeout in [0.002 * i for i in range(1, 20)] * 2:
            try:
                self.call(KV + "Range", pb.range_of(b"large", b"largf"), channel=unlimited, timeout=timeout)
            except grpc.RpcError as e:
                self.assertEqual(e.code(), grpc.StatusCode.DEADLINE_EXCEEDED, e)


if __name__ == "__main__":
    unittest.main()
