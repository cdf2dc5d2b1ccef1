/*
 * What a transformer of `etcdctl migrate` answers: keys of the v3 API, one after the other, each as
 * its length (8 bytes, little endian) and an mvccpb.KeyValue. They are collected in memory and
 * become rows of etcd's database under their mod_revision.
 *
 * No byte is trusted: a key and all of them together have a limit, and each needs a revision. One
 * owner, one thread. Aborts without memory.
 */
#ifndef VIGIL_CMD_CTL_OFFLINE_KV_FRAMES_H
#define VIGIL_CMD_CTL_OFFLINE_KV_FRAMES_H

#include "base/buf.h"
#include "base/error.h"
#include "bolt/schema.h"
#include "codec/pb/kv.pb.h"

/* The largest request that an etcd can be configured to accept is far smaller. */
#define KV_FRAME_BYTES_MAX ((uint64_t)64 << 20)
#define KV_FRAMES_BYTES_MAX ((uint64_t)4 << 30)

struct kv_frame {
    int64_t revision;
    size_t order;                      /* order of arrival */
    uint8_t key[BOLT_TOMBSTONE_BYTES]; /* the revision, BOLT_REVISION_BYTES of them */
    struct slice value;                /* owned; an mvccpb.KeyValue */
};

struct kv_frames {
    uint64_t bytes_max; /* limit on the size of all of them */
    uint64_t bytes;
    struct buf partial; /* the beginning of the next one */
    struct kv_frame *all;
    size_t count, capacity;
};

void kv_frames_init(struct kv_frames *frames, uint64_t bytes_max);
void kv_frames_fini(struct kv_frames *frames); /* accepts a zeroed one */

/* Takes the next bytes of the answer. ST_DAMAGED, ST_LIMIT. */
MUST_CHECK
enum status kv_frames_feed(struct kv_frames *frames, struct slice bytes, struct error *ret_error);
/* Takes a key that is not in the form of an answer. */
MUST_CHECK
enum status kv_frames_add(struct kv_frames *frames, const struct pb_key_value *kv,
                          struct error *ret_error);
/* The answer has ended: sorts by revision; of several with the same the last one is kept. */
MUST_CHECK
enum status kv_frames_end(struct kv_frames *frames, struct error *ret_error);

#endif
