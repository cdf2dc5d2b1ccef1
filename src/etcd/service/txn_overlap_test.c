#include "etcd/service/txn_overlap.h"

#include "base/random.h"
#include "codec/pb/rpc.pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 256 << 20);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/*
 * A branch as text: "a" puts a; "-a" deletes it; "-a:c" deletes [a, c), "-a:0" all from a on;
 * "(then|else)" nests. Operations are separated by spaces.
 */
struct ops {
    struct pb_request_op *items;
    size_t count;
};

static struct ops parse(const char **text);

static struct slice one(const char *text)
{
    return *text == '0' ? SLICE_LITERAL("\0") : slice_of(text, 1);
}

static struct pb_request_op parse_delete(const char **text)
{
    struct pb_delete_range_request *request = arena_calloc(&arena, 1, sizeof(*request));
    request->key = one(*text);
    *text += 1;
    if (**text == ':') {
        request->range_end = one(*text + 1);
        *text += 2;
    }
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                  .request_delete_range = request};
}

static struct pb_request_op parse_txn(const char **text)
{
    struct pb_txn_request *txn = arena_calloc(&arena, 1, sizeof(*txn));
    struct ops then = parse(text);
    assert_int_equal(*(*text)++, '|');
    struct ops otherwise = parse(text);
    assert_int_equal(*(*text)++, ')');
    txn->success = then.items;
    txn->success_count = then.count;
    txn->failure = otherwise.items;
    txn->failure_count = otherwise.count;
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = txn};
}

static struct pb_request_op parse_put(const char **text)
{
    struct pb_put_request *put = arena_calloc(&arena, 1, sizeof(*put));
    put->key = one((*text)++);
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = put};
}

static struct ops parse(const char **text)
{
    struct ops ops = {.items = arena_calloc(&arena, 64, sizeof(struct pb_request_op))};
    for (; **text && **text != '|' && **text != ')';) {
        char c = **text;
        if (c == ' ') {
            ++*text;
            continue;
        }
        assert_true(ops.count < 64);
        if (c == '-' || c == '(')
            ++*text;
        ops.items[ops.count++] = c == '-'   ? parse_delete(text)
                                 : c == '(' ? parse_txn(text)
                                            : parse_put(text);
    }
    return ops;
}

static enum status check_text(const char *text)
{
    struct ops ops = parse(&text);
    assert_int_equal(*text, '\0');
    return txn_overlap_check(ops.items, ops.count, &arena);
}

static void rules_match_etcd(void **state)
{
    (void)state;
    static const struct {
        const char *ops;
        bool clashes;
    } rows[] = {
        {"", false},
        {"a", false},
        {"a b", false},
        {"a b a", true},
        {"-a -a -a:c", false},
        {"a -a", true},
        {"-a a", true},
        {"-a:c b", true},
        {"-a:c c", false},
        {"-b:d a", false},
        /* A range whose end is before its start, or open, covers nothing. */
        {"-c:a b", false},
        {"-a:0 b", false},
        /* Nested. */
        {"(a|a)", false},
        {"(a|a) a", true},
        {"(a|) (a|)", true},
        {"(a|) (|a)", true},
        {"((a|)|(|a))", false},
        {"((a|a)|a) b", false},
        {"((a|a)|a) (b|a)", true},
        {"(-a|a)", false},
        {"(a|-a)", false},
        {"-a (|a)", true},
        {"(|a) -a", true},
        {"(-a|) a", true},
        {"a (|-a)", true},
        {"(-a|) (a|)", true},
        {"(a|) (-a|)", false},
        {"((-a|)|(a|))", false},
        {"((-a|)|(a|)) (a|)", true},
        {"((a|)|(-a:c|)) (b|)", true},
        {"(-a:0|) (b|)", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum status expected = rows[i].clashes ? ST_DUPLICATE_KEY : ST_OK;
        if (check_text(rows[i].ops) != expected)
            fail_msg("\"%s\" should%s clash", rows[i].ops, rows[i].clashes ? "" : " not");
    }
}

/* -- Comparison with a naive implementation of the rules: sets of single-letter keys -- */

struct sets {
    uint64_t puts, deletes; /* bit per key */
    bool clashes;
};

static uint64_t covered(const struct pb_delete_range_request *request)
{
    unsigned from = request->key.ptr[0] - (unsigned)'a';
    unsigned to = from + 1;
    if (request->range_end.len)
        to = request->range_end.ptr[0] ? request->range_end.ptr[0] - (unsigned)'a' : 0;
    uint64_t bits = 0;
    for (unsigned i = from; i < to; i++)
        bits |= UINT64_C(1) << i;
    return bits;
}

static struct sets naive(const struct pb_request_op *ops, size_t count)
{
    struct sets s = {0};
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_DELETE_RANGE)
            s.deletes |= covered(ops[i].request_delete_range);
    }
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case != PB_REQUEST_OP_REQUEST_TXN)
            continue;
        const struct pb_txn_request *txn = ops[i].request_txn;
        struct sets then = naive(txn->success, txn->success_count);
        struct sets otherwise = naive(txn->failure, txn->failure_count);
        uint64_t both = then.puts | otherwise.puts;
        s.clashes |= then.clashes || otherwise.clashes || (both & (s.puts | s.deletes));
        s.puts |= both;
        s.deletes |= then.deletes | otherwise.deletes;
    }
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case != PB_REQUEST_OP_REQUEST_PUT)
            continue;
        uint64_t bit = UINT64_C(1) << (ops[i].request_put->key.ptr[0] - 'a');
        s.clashes |= (bit & (s.puts | s.deletes)) != 0;
        s.puts |= bit;
    }
    return s;
}

static size_t random_text(struct random *random, char *text, unsigned depth)
{
    size_t len = 0;
    for (uint64_t n = random_below(random, 4); n > 0; n--) {
        uint64_t kind = random_below(random, depth < 3 ? 4 : 2);
        char key = (char)('a' + random_below(random, 20));
        if (kind == 0) {
            text[len++] = key;
        } else if (kind == 1) {
            text[len++] = '-';
            text[len++] = key;
            if (random_chance(random, 1, 2)) {
                text[len++] = ':';
                text[len++] =
                    random_chance(random, 1, 8) ? '0' : (char)('a' + random_below(random, 20));
            }
        } else {
            text[len++] = '(';
            len += random_text(random, text + len, depth + 1);
            text[len++] = '|';
            len += random_text(random, text + len, depth + 1);
            text[len++] = ')';
        }
        text[len++] = ' ';
    }
    return len;
}

static void random_branches_agree_with_the_naive_rules(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 7);
    unsigned clashes = 0;
    for (unsigned round = 0; round < 10000; round++) {
        char text[4096];
        text[random_text(&random, text, 0)] = '\0';
        const char *rest = text;
        struct ops ops = parse(&rest);
        bool expected = naive(ops.items, ops.count).clashes;
        enum status got = txn_overlap_check(ops.items, ops.count, &arena);
        if (got != (expected ? ST_DUPLICATE_KEY : ST_OK))
            fail_msg("round %u: \"%s\" should%s clash", round, text, expected ? "" : " not");
        clashes += expected;
        arena_fini(&arena);
        arena_init(&arena, NULL, 0, 256 << 20);
    }
    assert_true(clashes > 500 && clashes < 9500);
}

/* As large as a message of 2 MiB permits, and deeply nested. */
static void large_branches_do_not_take_quadratic_time(void **state)
{
    (void)state;
    enum { WIDE = 100000, DEEP = 40 };
    struct pb_request_op *ops = arena_calloc(&arena, WIDE, sizeof(*ops));
    uint8_t *keys = arena_alloc(&arena, WIDE * 4);
    for (uint32_t i = 0; i < WIDE; i++) {
        memcpy(keys + 4 * i, &(uint32_t){__builtin_bswap32(i)}, 4);
        if (i % 2) {
            struct pb_put_request *put = arena_calloc(&arena, 1, sizeof(*put));
            put->key = slice_of(keys + 4 * i, 4);
            ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                            .request_put = put};
        } else {
            struct pb_delete_range_request *del = arena_calloc(&arena, 1, sizeof(*del));
            del->key = slice_of(keys + 4 * i, 4);
            ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                            .request_delete_range = del};
        }
    }
    size_t count = WIDE;
    for (unsigned depth = 0; depth < DEEP; depth++) {
        struct pb_txn_request *txn = arena_calloc(&arena, 1, sizeof(*txn));
        txn->success = ops;
        txn->success_count = count;
        struct pb_put_request *put = arena_calloc(&arena, 1, sizeof(*put));
        put->key = SLICE_LITERAL("other");
        txn->failure = arena_calloc(&arena, 1, sizeof(*txn->failure));
        txn->failure[0] =
            (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = put};
        txn->failure_count = 1;
        ops = arena_calloc(&arena, 1, sizeof(*ops));
        ops[0] =
            (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = txn};
        count = 1;
    }
    assert_int_equal(txn_overlap_check(ops, count, &arena), ST_OK);
}

static void exhausted_arena_is_an_error(void **state)
{
    (void)state;
    const char *text = "a b c -d";
    struct ops ops = parse(&text);
    struct arena small;
    arena_init(&small, NULL, 0, 64);
    assert_int_equal(txn_overlap_check(ops.items, ops.count, &small), ST_NOMEM);
    arena_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rules_match_etcd, setup, teardown),
        cmocka_unit_test_setup_teardown(random_branches_agree_with_the_naive_rules, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(large_branches_do_not_take_quadratic_time, setup, teardown),
        cmocka_unit_test_setup_teardown(exhausted_arena_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
