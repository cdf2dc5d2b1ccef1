#!/usr/bin/python3
"""pbgen.py parses the syntax of our proto files, and refuses other syntax with the line number."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import pbgen  # noqa: E402


def parse(body, name="x"):
    return pbgen.Parser(name, 'syntax = "proto3";\npackage p;\n' + body).parse()


class Names(unittest.TestCase):
    def test_c_names_split_words_and_keep_acronyms_whole(self):
        for proto, c in [("RangeRequest", "range_request"), ("HashKVRequest", "hash_kv_request"),
                         ("peerURLs", "peer_urls"), ("TTL", "ttl"), ("remaining_TTL", "remaining_ttl"),
                         ("grantedTTL", "granted_ttl"), ("dbSizeInUse", "db_size_in_use"),
                         ("memberID", "member_id"), ("KV", "kv"), ("kvs", "kvs")]:
            self.assertEqual(pbgen.snake(proto), c)

    def test_json_names_capitalize_only_after_an_underscore(self):
        for proto, json in [("sort_order", "sortOrder"), ("remaining_TTL", "remainingTTL"),
                            ("peerURLs", "peerURLs"), ("ID", "ID")]:
            self.assertEqual(pbgen.lower_camel(proto), json)


class Reads(unittest.TestCase):
    def test_fields_are_sorted_by_number(self):
        file = parse("message M { bytes b = 3; oneof o { int64 c = 2; } repeated bool a = 1; }")
        self.assertEqual([f.number for f in file.messages[0].fields], [1, 2, 3])

    def test_comments_are_skipped(self):
        file = parse("// one\n/* two\nlines */ message M { bool a = 1; // three\n }")
        self.assertEqual(len(file.messages[0].fields), 1)

    def test_types_are_looked_up_from_the_innermost_scope(self):
        file = parse("enum E { A = 0; } message M { enum E { B = 0; } E e = 1; }")
        file.enums[1].c_name = "pb_other"  # in C they would collide; here only the scope counts
        pbgen.resolve([file])
        self.assertEqual(file.messages[0].fields[0].target.full_name, "p.M.E")

    def test_generated_files_are_the_same_each_time(self):
        protos = os.path.join(os.path.dirname(pbgen.__file__), "../proto")
        paths = [os.path.join(protos, n + ".proto") for n in ("kv", "auth", "rpc")]
        texts = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as out:
                pbgen.main(out, paths)
                texts.append({p.name: p.read_text() for p in pathlib.Path(out).iterdir()})
        self.assertEqual(texts[0], texts[1])


class Refuses(unittest.TestCase):
    def refuse(self, body, words):
        with self.assertRaises(pbgen.ProtoError) as caught:
            pbgen.resolve([parse(body)])
        self.assertIn(words, str(caught.exception))

    def test_unsupported_syntax_is_refused(self):
        for body in ("message M {\n map<string, string> m = 1; }", "message M {\n double d = 1; }",
                     "message M {\n optional bool b = 1; }", "message M {\n message N {} }",
                     "message M {\n reserved 4; }", "message M {\n option x = 1; }"):
            self.refuse(body, "x.proto:4: ")

    def test_numbers_out_of_range_or_used_twice(self):
        self.refuse("message M { bool a = 0; }", "out of range")
        self.refuse("message M { bool a = 536870912; }", "out of range")
        self.refuse("message M { bool a = 1; bool b = 1; }", "twice")

    def test_enums_that_do_not_begin_with_zero(self):
        self.refuse("enum E { A = 1; }", "begin with 0")

    def test_unknown_types_are_refused(self):
        self.refuse("message M { Nothing n = 1; }", "no type Nothing")

    def test_names_that_collide_in_c(self):
        self.refuse("message AbC {} message ABC {} message Abc {} message Ab_c {}", "called")
        self.refuse("message Field {}", "pb_field")

    def test_files_that_end_early(self):
        self.refuse("message M { bool a = 1;", "ends too early")

    def test_other_syntaxes(self):
        with self.assertRaises(pbgen.ProtoError):
            pbgen.Parser("x", 'syntax = "proto2";').parse()


if __name__ == "__main__":
    unittest.main()
