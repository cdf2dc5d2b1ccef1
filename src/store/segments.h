/*
 * The keeper's table of segments: how much of each is alive. Kept in the checkpoint; the part that
 * changed is written with it.
 */
#ifndef VIGIL_STORE_SEGMENTS_H
#define VIGIL_STORE_SEGMENTS_H

#include "store/backend/backend.h"
#include "store/log/log.h"

struct segments {
    struct backend *backend;
    struct backend_segment *rows; /* ascending ids */
    size_t count, capacity;
};

/* Reads what the checkpoint has. */
void segments_init(struct segments *segments, struct backend *backend);
void segments_fini(struct segments *segments);

/* The bytes at loc came alive, or died (negative). */
void segments_add_live(struct segments *segments, log_loc loc, int64_t bytes);

/* Inside a transaction: writes the rows of all segments that begin at or before index. */
MUST_CHECK
enum status segments_write(struct segments *segments, const struct log *log, uint64_t index);

/* A segment was replaced by another (0: by none), of which so many bytes are alive. */
MUST_CHECK
enum status segments_replace(struct segments *segments, uint64_t old_id, uint64_t new_id,
                             uint64_t live_bytes);

/* The full segment, taken over wholly, with the smallest living part below a half; 0: none. */
uint64_t segments_most_dead(const struct segments *segments, const struct log *log, uint64_t index);

/* Bytes the log has got since the rows were last written. */
uint64_t segments_bytes_after(const struct segments *segments, const struct log *log);

#endif
