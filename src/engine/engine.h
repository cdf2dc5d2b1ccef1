/*
 * The seam between the faces (etcd/, kube/) and what keeps the data. The local engine is a store
 * in this process; the fake (engine/fake/fake.h) delays and reorders, for the tests of the faces; a
 * cluster engine will forward to a real etcd cluster.
 *
 * Every call is an operation: it is started, it completes exactly once, and that may be before the
 * starting call returns. The operation's memory belongs to the caller and must live until done.
 * There is no way to take a started write back: a caller that lost interest waits for done and
 * drops the answer.
 *
 * Threads: each I/O thread has one engine_shard; operations are started and completed on it.
 * Requests are the decoded messages of codec/ and are borrowed until done. Texts of errors are
 * those of the status table unless `text` is set (an upstream's own words).
 *
 * Leases are in engine/lease.h.
 */
#ifndef VIGIL_ENGINE_ENGINE_H
#define VIGIL_ENGINE_ENGINE_H

#include "engine/operation.h"
#include "io/loop.h"

struct pb_range_request;
struct pb_put_request;
struct pb_delete_range_request;
struct pb_txn_request;
struct pb_compaction_request;
struct metric_page;
struct watch_hub;
struct watch_stats;
struct watch_stream_stats;

/* -- Reading -- */

/*
 * Starts it; on success the caller must close it. A request without keys_only, filters and sort is
 * answered from the index without being held anywhere.
 */
void engine_range_start(struct engine_shard *shard, struct engine_range *range,
                        const struct pb_range_request *request);

/*
 * Sets how far fill goes next: at most keys_max further key-values. Says how many those are and
 * their bytes. Without this call fill goes to the end.
 */
void engine_range_window(struct engine_range *range, int64_t keys_max, int64_t *ret_keys,
                         uint64_t *ret_bytes);

/*
 * Copies the next bytes of the window's fields; less than room only at the end of the window, or
 * when the range had to be given up: then op.status says why (a reader so slow that its revision
 * was compacted meanwhile).
 */
size_t engine_range_fill(struct engine_range *range, uint8_t *dst, size_t room);

/*
 * Or one by one, as they lie: the next field of the window, `12 len KeyValue`, valid until the next
 * call. Not for keys_only, and not mixed with fill. False at the end of the window, or when the
 * range had to be given up, as above.
 */
MUST_CHECK
bool engine_range_next(struct engine_range *range, struct slice *ret_field);

/* It is not done, and nobody waits for it: it need not be. It is still to be waited for. */
void engine_range_give_up(struct engine_range *range);
/* Unpins. Does nothing for a range that failed or was closed. */
void engine_range_close(struct engine_range *range);

/* -- Writing -- */

void engine_put(struct engine_shard *shard, struct engine_write *write,
                const struct pb_put_request *request);
void engine_delete_range(struct engine_shard *shard, struct engine_write *write,
                         const struct pb_delete_range_request *request);
/* Reads only or writes: the engine finds out. The request was checked by the face. */
void engine_txn(struct engine_shard *shard, struct engine_write *write,
                const struct pb_txn_request *request);
/* Nobody waits for it: a transaction that only reads need not be done. It is still to be waited
 * for. */
void engine_write_give_up(struct engine_write *write);
void engine_write_close(struct engine_write *write);

void engine_compact(struct engine_shard *shard, struct engine_op *op,
                    const struct pb_compaction_request *request);

/* -- About the engine; maintenance itself is in engine/maintenance.h -- */

/* From the shard's own knowledge: needs no round trip. */
void engine_status_get(struct engine_shard *shard, struct engine_status *ret_status);

struct engine_identity engine_identity_get(const struct engine *engine);

/* Writes what the engine counts to the page of metrics. */
void engine_metrics_write(struct engine_shard *shard, struct metric_page *page);

/* -- Watching -- */

/* Where the shard's watch streams live (watch/stream.h). Always the same one; the shard's own. */
struct watch_hub *engine_watch_hub(struct engine_shard *shard);

/* What all shards have counted (watch/stats.h) up to their last turns. Any thread, no lock. */
void engine_watch_stats(const struct engine *engine, struct watch_stats *ret_stats);
/* The streams farthest behind, the slowest first; about a second old. Returns how many. */
size_t engine_watch_slowest(const struct engine *engine, struct watch_stream_stats *ret_streams,
                            size_t max);

/* -- Shards -- */

/* On the thread that owns the loop. Completions of that shard's operations come in its turns. */
MUST_CHECK
enum status engine_shard_new(struct engine *engine, struct loop *loop,
                             struct engine_shard **ret_shard);
void engine_shard_free(struct engine_shard *shard);

/*
 * Called by the loop's owner once per turn after the ready sockets were read, and at its end. The
 * first loads the newest published state, which all reads of the turn use; the second lets go of
 * it and hands the turn's writes over in one piece.
 */
void engine_shard_turn_begin(struct engine_shard *shard);
void engine_shard_turn_end(struct engine_shard *shard);
/*
 * Called after what was to be sent was sent, before the loop waits: what watches were given to send
 * from where it lies is let go, and writes begun while sending are handed over. Every turn that
 * began ends with it.
 */
void engine_shard_flushed(struct engine_shard *shard);

#endif
