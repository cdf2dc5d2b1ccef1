/*
 * What the codec costs for a message, in nanoseconds: `ninja codec_bench && unit/codec_bench`.
 * The numbers of docs/decisions/0002-protobuf-codec.md come from here.
 */
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 300, ARENA_FIRST_BYTES = 8192, ARENA_BYTES_MAX = 16 << 20 };

struct sample {
    const char *name;
    const struct pb_message *type;
    const void *message;
    unsigned times;
};

static uint8_t arena_first[ARENA_FIRST_BYTES];

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void must(enum status status)
{
    if (status != ST_OK) {
        fprintf(stderr, "codec_bench: %s\n", status_text(status));
        exit(1);
    }
}

static double decode_ns(const struct sample *sample, struct slice bytes, void *into)
{
    double start = now_ns();
    for (unsigned i = 0; i < sample->times; i++) {
        struct arena arena;
        arena_init(&arena, arena_first, sizeof(arena_first), ARENA_BYTES_MAX);
        must(pb_decode(sample->type, bytes, &arena, into));
        arena_fini(&arena);
        __asm__ volatile("" ::"r"(into) : "memory");
    }
    return (now_ns() - start) / sample->times;
}

static double encode_ns(const struct sample *sample, uint8_t *dst)
{
    double start = now_ns();
    for (unsigned i = 0; i < sample->times; i++) {
        size_t size = pb_size(sample->type, sample->message);
        pb_encode(sample->type, sample->message, dst, size);
        __asm__ volatile("" ::"r"(dst) : "memory");
    }
    return (now_ns() - start) / sample->times;
}

/* The best of many short rounds: some of them run undisturbed even on a busy machine. */
static void measure(const struct sample *sample)
{
    AUTO(buf_fini) struct buf bytes = {0};
    must(pb_append(sample->type, sample->message, &bytes));
    void *into = malloc(sample->type->struct_bytes);
    if (!into)
        must(ST_NOMEM);
    double decode = 1e18, encode = 1e18, got;
    for (unsigned round = 0; round < ROUNDS; round++) {
        got = decode_ns(sample, buf_slice(&bytes), into);
        decode = got < decode ? got : decode;
    }
    uint8_t *dst = bytes.ptr;
    for (unsigned round = 0; round < ROUNDS; round++) {
        got = encode_ns(sample, dst);
        encode = got < encode ? got : encode;
    }
    printf("%-28s %8zu bytes  decode %10.1f ns  size and encode %10.1f ns\n", sample->name,
           bytes.len, decode, encode);
    free(into);
}

/* A KeyValue as the store writes it, by the primitives of wire.h. */
static size_t key_value_size(const struct pb_key_value *kv)
{
    return pb_bytes_size(1, kv->key.len) + pb_uint_size(2, (uint64_t)kv->create_revision) +
           pb_uint_size(3, (uint64_t)kv->mod_revision) + pb_uint_size(4, (uint64_t)kv->version) +
           pb_bytes_size(5, kv->value.len) + pb_uint_size(6, (uint64_t)kv->lease);
}

static uint8_t *key_value_write(uint8_t *dst, const struct pb_key_value *kv)
{
    dst = pb_bytes_write(dst, 1, kv->key);
    dst = pb_uint_write(dst, 2, (uint64_t)kv->create_revision);
    dst = pb_uint_write(dst, 3, (uint64_t)kv->mod_revision);
    dst = pb_uint_write(dst, 4, (uint64_t)kv->version);
    dst = pb_bytes_write(dst, 5, kv->value);
    return pb_uint_write(dst, 6, (uint64_t)kv->lease);
}

static void measure_by_hand(const struct pb_key_value *kv, unsigned times)
{
    uint8_t dst[1024];
    double best = 1e18;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (unsigned i = 0; i < times; i++) {
            __asm__ volatile("" ::"r"(kv) : "memory");
            size_t size = key_value_size(kv);
            const uint8_t *end = key_value_write(dst, kv);
            if ((size_t)(end - dst) != size)
                must(ST_INTERNAL);
            __asm__ volatile("" ::"r"(dst) : "memory");
        }
        double got = (now_ns() - start) / times;
        best = got < best ? got : best;
    }
    printf("%-28s %8zu bytes  %26s by hand %13.1f ns\n", "KeyValue", key_value_size(kv), "", best);
}

int main(void)
{
    static uint8_t value[256];
    struct slice key = SLICE_LITERAL("/registry/pods/default/web-7f9c");
    struct pb_put_request put = {.key = key, .value = slice_of(value, sizeof(value)), .lease = 7};
    struct pb_range_request range = {.key = key, .limit = 500, .revision = 123456};
    struct pb_range_request get = {.key = key};
    struct pb_compare compare = {.target = PB_COMPARE_TARGET_MOD,
                                 .key = key,
                                 .target_union_case = PB_COMPARE_MOD_REVISION,
                                 .mod_revision = 123456};
    struct pb_request_op success = {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put};
    struct pb_request_op failure = {.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                    .request_range = &get};
    struct pb_txn_request txn = {.compare = &compare,
                                 .compare_count = 1,
                                 .success = &success,
                                 .success_count = 1,
                                 .failure = &failure,
                                 .failure_count = 1};
    struct pb_key_value kv = {.key = key,
                              .create_revision = 123456,
                              .mod_revision = 234567,
                              .version = 12,
                              .value = slice_of(value, sizeof(value))};
    struct pb_response_header header = {.cluster_id = 0xcdf818194e3a8c32,
                                        .member_id = 0x8e9e05c52164694d,
                                        .revision = 234567,
                                        .raft_term = 2};
    struct pb_put_response put_response = {.header = &header};
    static struct pb_key_value kvs[10000];
    for (size_t i = 0; i < COUNT_OF(kvs); i++)
        kvs[i] = kv;
    struct pb_range_response list = {
        .header = &header, .kvs = kvs, .kvs_count = COUNT_OF(kvs), .count = COUNT_OF(kvs)};

    const struct sample samples[] = {
        {"PutRequest", &pb_put_request_table, &put, 20000},
        {"RangeRequest of one key", &pb_range_request_table, &get, 20000},
        {"RangeRequest", &pb_range_request_table, &range, 20000},
        {"TxnRequest, update", &pb_txn_request_table, &txn, 5000},
        {"PutResponse", &pb_put_response_table, &put_response, 20000},
        {"KeyValue", &pb_key_value_table, &kv, 20000},
        {"RangeResponse, 10,000 keys", &pb_range_response_table, &list, 1},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++)
        measure(&samples[i]);
    measure_by_hand(&kv, 20000);
    return 0;
}
