#include "client/names/srv.h"

#include "base/random.h"
#include "client/names/dns_table_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define QUESTION "_etcd-client._tcp.example.com"

static struct srv_target targets[SRV_TARGETS_MAX];

static enum status parse(const struct buf *message, size_t *ret_count)
{
    /* A copy of exactly this size, so that the address sanitizer finds reads beyond it. */
    uint8_t *copy = malloc(message->len ? message->len : 1);
    slice_copy(copy, buf_slice(message));
    enum status status = srv_parse(slice_of(copy, message->len), targets, ret_count);
    free(copy);
    return status;
}

static void make_three(struct buf *message)
{
    dns_begin(message, 0x8180, 3, QUESTION);
    dns_add_srv(message, 10, 0, 2379, "a.example.com");
    dns_add_srv(message, 5, 10, 2380, "b.example.com.");
    dns_add_record(message, 33, SLICE_LITERAL("\0\5\0\x5a\x09\x4d\1c\xc0\x1e"));
}

static void records_are_read_with_compressed_names(void **state)
{
    (void)state;
    struct buf message = {0};
    size_t count;
    make_three(&message);
    assert_int_equal(parse(&message, &count), ST_OK);
    assert_int_equal(count, 3);
    assert_string_equal(targets[0].host, "a.example.com");
    assert_int_equal(targets[0].priority, 10);
    assert_int_equal(targets[0].port, 2379);
    assert_string_equal(targets[1].host, "b.example.com");
    assert_int_equal(targets[1].weight, 10);
    assert_string_equal(targets[2].host, "c.example.com");
    assert_int_equal(targets[2].weight, 90);
    assert_int_equal(targets[2].port, 2381);
    buf_fini(&message);
}

static void answer_that_ends_early_is_malformed_at_every_byte(void **state)
{
    (void)state;
    struct buf message = {0};
    size_t count;
    make_three(&message);
    for (size_t whole = message.len; message.len-- > 0;) {
        assert_int_equal(parse(&message, &count), ST_MALFORMED);
        assert_true(message.len < whole);
    }
    message.len = 0;
    buf_fini(&message);
}

static void changed_bytes_do_no_harm(void **state)
{
    (void)state;
    struct buf message = {0};
    size_t count;
    make_three(&message);
    for (size_t i = 0; i < message.len; i++)
        for (unsigned change = 1; change < 256; change++) {
            message.ptr[i] ^= (uint8_t)change;
            if (parse(&message, &count) == ST_OK)
                for (size_t k = 0; k < count; k++)
                    assert_in_range(strnlen(targets[k].host, SRV_HOST_BYTES), 1,
                                    SRV_HOST_BYTES - 1);
            message.ptr[i] ^= (uint8_t)change;
        }
    buf_fini(&message);
}

/* One record with this target; the record's data begins at offset 59. */
static enum status parse_target(struct slice target)
{
    struct buf message = {0}, data = {0};
    size_t count;
    dns_begin(&message, 0x8180, 1, QUESTION);
    dns_must(buf_append(&data, SLICE_LITERAL("\0\0\0\0\0\1")) == ST_OK);
    dns_must(buf_append(&data, target) == ST_OK);
    dns_add_record(&message, 33, buf_slice(&data));
    enum status status = parse(&message, &count);
    buf_fini(&message);
    buf_fini(&data);
    return status;
}

static void hostile_targets_are_refused(void **state)
{
    (void)state;
#define LABEL_63 \
    "\x3f"       \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    static const struct {
        struct slice target;
        enum status status;
    } rows[] = {
        {SLICE_LITERAL("\1a\0"), ST_OK},
        {SLICE_LITERAL("\3a_1\3b-c\0"), ST_OK},
        {SLICE_LITERAL("\0"), ST_NOT_FOUND},          /* "." */
        {SLICE_LITERAL("\3a.b\0"), ST_NOT_FOUND},     /* a dot within a label */
        {SLICE_LITERAL("\3a\0b\0"), ST_NOT_FOUND},    /* a NUL within a label */
        {SLICE_LITERAL("\3a/b\0"), ST_NOT_FOUND},     /* not a host */
        {SLICE_LITERAL("\1a"), ST_MALFORMED},         /* no end */
        {SLICE_LITERAL("\2a"), ST_MALFORMED},         /* a label beyond the message */
        {SLICE_LITERAL(""), ST_MALFORMED},            /* no name */
        {SLICE_LITERAL("\xc0"), ST_MALFORMED},        /* half a pointer */
        {SLICE_LITERAL("\xc0\x41"), ST_MALFORMED},    /* to itself */
        {SLICE_LITERAL("\1a\xc0\x41"), ST_MALFORMED}, /* to its own beginning */
        {SLICE_LITERAL("\xc0\x80"), ST_MALFORMED},    /* forwards */
        {SLICE_LITERAL("\xff\xff"), ST_MALFORMED},    /* beyond the message */
        {SLICE_LITERAL("\x40x\0"), ST_MALFORMED},     /* a reserved kind of label */
        {SLICE_LITERAL("\x80x\0"), ST_MALFORMED},
        {SLICE_LITERAL("\xc0\x0c"), ST_OK}, /* to the name of the question */
        {SLICE_LITERAL(LABEL_63 LABEL_63 LABEL_63
                       "\x3d"
                       "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\0"),
         ST_OK},
        {SLICE_LITERAL(LABEL_63 LABEL_63 LABEL_63 LABEL_63 "\0"), ST_MALFORMED}, /* too long */
        {SLICE_LITERAL(LABEL_63 LABEL_63 LABEL_63 LABEL_63 "\xc0\x0c"), ST_MALFORMED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum status status = parse_target(rows[i].target);
        if (status != rows[i].status)
            fail_msg("row %zu: %s", i, status_name(status));
    }
}

static void chain_of_pointers_ends(void **state)
{
    (void)state;
    /* Each record's target is a label and a pointer to the target before: the names grow until they
     * are too long. */
    struct buf message = {0};
    size_t count = 0;
    dns_begin(&message, 0x8180, 200, QUESTION);
    unsigned before = 12;
    for (int i = 0; i < 200; i++) {
        uint8_t data[] = {0, 0, 0, 0, 0, 1, 1, 'a', (uint8_t)(0xc0 | before >> 8), (uint8_t)before};
        before = (unsigned)message.len + 12 + 6;
        dns_add_record(&message, 33, slice_of(data, sizeof(data)));
    }
    assert_int_equal(parse(&message, &count), ST_OK);
    assert_int_equal(count, SRV_TARGETS_MAX); /* the others are ignored */
    assert_int_equal(strlen(targets[count - 1].host), strlen(QUESTION) + 2 * SRV_TARGETS_MAX);
    buf_fini(&message);
}

static void counts_beyond_the_message_are_malformed(void **state)
{
    (void)state;
    struct buf message = {0};
    size_t count;
    make_three(&message);
    message.ptr[7] = 4; /* records */
    assert_int_equal(parse(&message, &count), ST_MALFORMED);
    message.ptr[7] = 3;
    message.ptr[4] = 0xff; /* questions */
    assert_int_equal(parse(&message, &count), ST_MALFORMED);
    buf_fini(&message);
}

static void other_records_and_failures_are_distinguished(void **state)
{
    (void)state;
    struct buf message = {0};
    size_t count;
    dns_begin(&message, 0x8180, 3, QUESTION);
    dns_add_record(&message, 5, SLICE_LITERAL("\1x\0"));
    dns_add_srv(&message, 0, 0, 1, "a");
    dns_add_record(&message, 16, SLICE_LITERAL("\3txt"));
    assert_int_equal(parse(&message, &count), ST_OK);
    assert_int_equal(count, 1);
    message.ptr[3] = 0x83; /* no such name */
    assert_int_equal(parse(&message, &count), ST_NOT_FOUND);
    message.ptr[3] = 0x82; /* the server failed */
    assert_int_equal(parse(&message, &count), ST_AGAIN);
    buf_fini(&message);
    dns_begin(&message, 0x8180, 0, QUESTION);
    assert_int_equal(parse(&message, &count), ST_NOT_FOUND);
    buf_fini(&message);
}

static void targets_are_ordered_by_priority_and_drawn_by_weight(void **state)
{
    (void)state;
    const struct srv_target all[] = {
        {2, 0, 1, "last"}, {1, 10, 1, "light"}, {1, 90, 1, "heavy"}, {1, 0, 1, "zero"}};
    enum { ROUNDS = 2000 };
    unsigned heavy_first = 0, zero_first = 0;
    struct random random;
    random_init(&random, 1);
    for (int i = 0; i < ROUNDS; i++) {
        struct srv_target some[4];
        memcpy(some, all, sizeof(some));
        srv_order(some, 4, &random);
        assert_string_equal(some[3].host, "last");
        heavy_first += strcmp(some[0].host, "heavy") == 0;
        zero_first += strcmp(some[0].host, "zero") == 0;
    }
    assert_in_range(heavy_first, ROUNDS * 85 / 100, ROUNDS * 95 / 100);
    assert_int_equal(zero_first, 0);
    srv_order(NULL, 0, &random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_with_compressed_names),
        cmocka_unit_test(answer_that_ends_early_is_malformed_at_every_byte),
        cmocka_unit_test(changed_bytes_do_no_harm),
        cmocka_unit_test(hostile_targets_are_refused),
        cmocka_unit_test(chain_of_pointers_ends),
        cmocka_unit_test(counts_beyond_the_message_are_malformed),
        cmocka_unit_test(other_records_and_failures_are_distinguished),
        cmocka_unit_test(targets_are_ordered_by_priority_and_drawn_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
