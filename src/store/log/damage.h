/*
 * Damage: bytes that were read are not those that were written, because of a failing disk or
 * because another program wrote into the files. The code that finds damage reports it here, on any
 * thread. It stays known until the log is closed.
 */
#ifndef VIGIL_STORE_LOG_DAMAGE_H
#define VIGIL_STORE_LOG_DAMAGE_H

#include "store/log/log.h"

void log_note_damage(const struct log *log, log_loc loc);

/*
 * The damage that the calling thread has noted last, so that an error can name the key. It is taken
 * on the same thread, when the request that met it fails.
 */
enum { LOG_DAMAGED_KEY_BYTES = 128 };
struct log_damaged {
    log_loc loc;      /* 0: none */
    int64_t revision; /* revision of the version that cannot be read; 0: unknown */
    size_t key_len;   /* length of the whole key; 0: unknown */
    uint8_t key[LOG_DAMAGED_KEY_BYTES]; /* its first bytes */
};
/* Adds what the caller of a function that has failed knows about the damage. */
void log_name_damage(struct slice key, int64_t revision);
struct log_damaged log_take_damage(void);

/* After a write or a sync has failed, which is final: with which file, as in "syncing FILE";
 * otherwise "". Any thread. */
enum { LOG_FAILURE_TEXT_BYTES = 4200 };
const char *log_failure_text(const struct log *log, char text[static LOG_FAILURE_TEXT_BYTES]);

/* A segment without records, made ahead of use, whose head was damaged: the start has removed it.
 * 0: there was none. */
uint64_t log_removed_spare(const struct log *log);
bool log_is_damaged(const struct log *log);
unsigned log_heads_mended(const struct log *log); /* by log_open, from their second copies */
/* How often damage was noted, and its last location. */
uint64_t log_damage_count(const struct log *log, uint64_t *ret_segment_id, uint64_t *ret_offset);

static inline void log_loc_split(log_loc loc, uint64_t *ret_segment_id, uint64_t *ret_offset)
{
    *ret_segment_id = loc >> LOG_OFFSET_BITS;
    *ret_offset = loc & (((uint64_t)1 << LOG_OFFSET_BITS) - 1);
}

#endif
