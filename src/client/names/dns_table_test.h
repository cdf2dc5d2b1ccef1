/*
 * Names for tests, instead of DNS: a table of hosts and SRV records as a backend of the resolver.
 *
 *     {"etcd.test", "10.0.0.1 ::1"},
 *     {"_etcd-client._tcp.test", "0 10 2379 a.test; 0 90 2379 b.test"},   priority weight port host
 */
#ifndef VIGIL_CLIENT_NAMES_DNS_TABLE_TEST_H
#define VIGIL_CLIENT_NAMES_DNS_TABLE_TEST_H

#include "base/buf.h"
#include "client/names/resolver.h"

#include <stdio.h>
#include <stdlib.h>

struct dns_row {
    const char *name, *answer;
};

/* Ends with a row without a name. */
struct dns_table {
    const struct dns_row *rows;
    unsigned lookups; /* made so far */
};

static inline void dns_must(bool ok)
{
    if (!ok)
        abort();
}

static inline void dns_add_u16(struct buf *message, unsigned n)
{
    const uint8_t bytes[] = {(uint8_t)(n >> 8), (uint8_t)n};
    dns_must(buf_append(message, slice_of(bytes, 2)) == ST_OK);
}

static inline void dns_add_name(struct buf *message, const char *name)
{
    struct slice rest = slice_from_text(name);
    while (rest.len) {
        struct slice label = slice_cut(&rest, '.');
        uint8_t len = (uint8_t)label.len;
        dns_must(buf_append(message, slice_of(&len, 1)) == ST_OK);
        dns_must(buf_append(message, label) == ST_OK);
    }
    dns_must(buf_append(message, SLICE_LITERAL("\0")) == ST_OK);
}

/* The head of an answer, and its question. */
static inline void dns_begin(struct buf *message, unsigned flags, unsigned records,
                             const char *name)
{
    const unsigned head[] = {7, flags, 1, records, 0, 0};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        dns_add_u16(message, head[i]);
    dns_add_name(message, name);
    dns_add_u16(message, 33);
    dns_add_u16(message, 1);
}

/* One record whose owner is the name of the question. */
static inline void dns_add_record(struct buf *message, unsigned type, struct slice data)
{
    dns_add_u16(message, 0xc00c);
    dns_add_u16(message, type);
    dns_add_u16(message, 1);
    dns_add_u16(message, 0);
    dns_add_u16(message, 60);
    dns_add_u16(message, (unsigned)data.len);
    dns_must(buf_append(message, data) == ST_OK);
}

static inline void dns_add_srv(struct buf *message, unsigned priority, unsigned weight,
                               unsigned port, const char *target)
{
    struct buf data = {0};
    dns_add_u16(&data, priority);
    dns_add_u16(&data, weight);
    dns_add_u16(&data, port);
    dns_add_name(&data, target);
    dns_add_record(message, 33, buf_slice(&data));
    buf_fini(&data);
}

static inline const char *dns_find(struct dns_table *table, const char *name)
{
    table->lookups++;
    for (const struct dns_row *row = table->rows; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row->answer;
    return NULL;
}

static inline enum status dns_table_host(void *ctx, const char *host, struct address *addresses,
                                         size_t *ret_count, struct error *error)
{
    const char *answer = dns_find(ctx, host);
    if (!answer)
        return error_set(error, ST_NOT_FOUND, "no such host");
    struct slice rest = slice_from_text(answer);
    for (*ret_count = 0; rest.len; ++*ret_count)
        dns_must(address_from_host(slice_cut(&rest, ' '), 0, &addresses[*ret_count]) == ST_OK);
    return ST_OK;
}

static inline enum status dns_table_srv(void *ctx, const char *name, uint8_t *answer,
                                        size_t *ret_len, struct error *error)
{
    const char *text = dns_find(ctx, name);
    if (!text)
        return error_set(error, ST_NOT_FOUND, "no such host");
    unsigned count = 1;
    for (const char *at = text; *at; at++)
        count += *at == ';';
    struct buf message = {0};
    dns_begin(&message, 0x8180, count, name);
    for (struct slice rest = slice_from_text(text); rest.len;) {
        char row[300], target[256];
        unsigned priority, weight, port;
        struct slice one = slice_trim(slice_cut(&rest, ';'));
        snprintf(row, sizeof(row), "%.*s", SLICE_ARGS(one));
        /* NOLINTNEXTLINE(cert-err34-c): the count of conversions is checked */
        dns_must(sscanf(row, "%u %u %u %255s", &priority, &weight, &port, target) == 4);
        dns_add_srv(&message, priority, weight, port, target);
    }
    slice_copy(answer, buf_slice(&message));
    *ret_len = message.len;
    buf_fini(&message);
    return ST_OK;
}

/* Answers on the loop's thread. The table is borrowed. */
static inline struct resolver_backend dns_table_backend(struct dns_table *table)
{
    return (struct resolver_backend){.host = dns_table_host, .srv = dns_table_srv, .ctx = table};
}

#endif
