/*
 * The checks of KV requests that etcd makes before they reach its store, in the same order, so that
 * a request with two faults gets the same error. Pure functions of the decoded request.
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
 * A list of operations may have ops_max of them, and a transaction nested in it ops_max minus the
 * length of the parent's longest list. Puts and deletes of one branch may not change the same key:
 * see etcd/service/txn_overlap.h, which uses the arena.
 */
MUST_CHECK
enum status kv_check_txn(const struct pb_txn_request *request, size_t ops_max, struct arena *arena);

/*
 * The limit of compares and operations in one transaction, including nested ones and unknown
 * fields, because all of them are decoded and checked in one turn of an I/O thread. A transaction
 * may have more if ops_max permits lists of that length.
 */
enum { KV_TXN_TOTAL_MAX = 16384 };

/*
 * Examines a TxnRequest before it is decoded. True: an outermost list is longer than ops_max, or
 * all lists together are longer than KV_TXN_TOTAL_MAX and 3 * ops_max. Decoding such a request can
 * take a hundred times as long as this check. False also for malformed bytes, which the decoder
 * reports.
 */
bool kv_txn_is_too_long(struct slice message, size_t ops_max);

/* NULL, or why RangeStream does not support the request: the text of an UNIMPLEMENTED error. */
const char *kv_check_range_stream(const struct pb_range_request *request);

/* The transaction has only ranges, and no nested transaction, so etcd does not write it to its log.
 */
bool kv_txn_reads_only(const struct pb_txn_request *request);

#endif
