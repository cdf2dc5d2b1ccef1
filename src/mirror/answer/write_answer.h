/*
 * The cluster's response to a write as an answer of the engine (codec/answer.h). A response is
 * bytes of another server: it is compared with the request, so that its reader finds
 * an answer of the right kind for each operation of the branch that was taken.
 *
 * Everything in an answer is in the arena; the message need not be kept. ST_MALFORMED: the bytes
 * are not a response to this request; ST_LIMIT, ST_NOMEM: the arena is exhausted.
 */
#ifndef VIGIL_MIRROR_ANSWER_WRITE_ANSWER_H
#define VIGIL_MIRROR_ANSWER_WRITE_ANSWER_H

#include "base/memory/arena.h"
#include "codec/answer.h"

struct pb_delete_range_request;
struct pb_put_request;
struct pb_txn_request;

MUST_CHECK
enum status write_answer_put(struct slice message, const struct pb_put_request *request,
                             struct arena *arena, struct kv_answer *ret_answer);
MUST_CHECK
enum status write_answer_delete(struct slice message, const struct pb_delete_range_request *request,
                                struct arena *arena, struct kv_answer *ret_answer);
MUST_CHECK
enum status write_answer_txn(struct slice message, const struct pb_txn_request *request,
                             struct arena *arena, struct kv_answer *ret_answer);

#endif
