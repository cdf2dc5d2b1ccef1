/*
 * What etcd refuses before a KV request reaches its store: the same checks in the same order, so
 * that a request with two faults is told the same one. Pure functions of the decoded request.
 */
#ifndef VIGIL_ETCD_SERVICE_KV_CHECK_H
#define VIGIL_ETCD_SERVICE_KV_CHECK_H

#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"

struct pb_range_request;
struct pb_put_request;
struct pb_delete_range_request;
struct pb_txn_request;

MUST_CHECK
enum status kv_check_range(const struct pb_range_request *request);
MUST_CHECK
enum status kv_check_put(const struct pb_put_request *request);
MUST_CHECK
enum status kv_check_delete_range(const struct pb_delete_range_request *request);

/*
 * A list of operations may hold ops_max of them, and a transaction nested in it ops_max less the
 * parent's longest list. Puts and deletes of one branch may not touch the same key: see
 * etcd/service/txn_overlap.h. The arena is for the work of that check.
 */
MUST_CHECK
enum status kv_check_txn(const struct pb_txn_request *request, size_t ops_max, struct arena *arena);

/*
 * Compares and operations of one transaction, those of nested ones included; fields that are not
 * known count as well. As many are decoded and checked in one turn of an I/O thread. A transaction
 * may have more if ops_max lets its own lists be so long.
 */
enum { KV_TXN_TOTAL_MAX = 16384 };

/*
 * Of a TxnRequest that is not decoded yet: an outermost list is longer than ops_max, or all lists
 * together are longer than KV_TXN_TOTAL_MAX and 3 * ops_max. Decoding such a one may take a hundred
 * times as long as finding this out. False also for bytes that are no message: the decoder says so.
 */
bool kv_txn_is_too_long(struct slice message, size_t ops_max);

/* What a range stream does not offer: NULL, or the text of an UNIMPLEMENTED. */
const char *kv_check_range_stream(const struct pb_range_request *request);

/* Ranges only, none of them inside a nested transaction: etcd serves it without its log. */
bool kv_txn_reads_only(const struct pb_txn_request *request);

#endif
