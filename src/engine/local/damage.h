/*
 * Stored bytes that are not what was written (a disk that rots, somebody who writes into the
 * files): what a client is told, and what an operator is. Any thread.
 */
#ifndef VIGIL_ENGINE_LOCAL_DAMAGE_H
#define VIGIL_ENGINE_LOCAL_DAMAGE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

struct engine_local;

struct local_damage {
    _Atomic int64_t told_ns; /* when the last line about it was written */
    _Atomic uint64_t reads;  /* of clients that met it */
};

enum { LOCAL_DAMAGE_TEXT_BYTES = 256 };
/* Where it is, and what can be done. The key may be empty. */
void local_damage_text(char text[static LOCAL_DAMAGE_TEXT_BYTES], uint64_t segment_id,
                       uint64_t offset, struct slice key);

/*
 * The status for a client: etcd's for a store that is not to be trusted, instead of ST_DAMAGED; any
 * other as it is. Damage is counted, and told to the operator with its place, at most once a
 * second. The key may be empty.
 */
enum status local_damage_told(struct engine_local *engine, enum status status, struct slice key);

#endif
