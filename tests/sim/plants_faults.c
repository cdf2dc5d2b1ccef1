/* Planted bugs that one class of faults shows: damage of the disk, stalls, and stops. */
#include "plants.h"

#include "actors.h"
#include "engine/local/keeper/keeper.h"
#include "engine/local/state/lease.h"
#include "engine/local/state/messages.h"
#include "lease/lessor.h"
#include "store/backend/backend.h"
#include "store/store.h"

#include <string.h>

static const struct {
    const char *fault;
    enum plan_switch which;
} faults[] = {
    {"power cut", SWITCH_CUT},
    {"kill", SWITCH_KILL},
    {"clean stop", SWITCH_STOP},
    {"I/O error", SWITCH_ERRORS},
    {"full disk", SWITCH_FULL},
    {"slow disk", SWITCH_SLOW},
    {"misdirected sector", SWITCH_MISDIRECT},
    {"changed bit", SWITCH_ROT},
    {"broken connection", SWITCH_BREAK},
    {"silent connection", SWITCH_SILENCE},
    {"slow connection", SWITCH_DELAY},
    {"pause", SWITCH_PAUSE},
    {"jumping clock", SWITCH_CLOCK},
    {"older replica", SWITCH_REPLICA},
};

enum plan_switch plant_switch(enum plant plant)
{
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        if (strcmp(faults[i].fault, plant_fault(plant)) == 0)
            return faults[i].which;
    return SWITCHES;
}

/* -- Checksums -- */

/* A lost sector leaves zeros, since the log is written onto zeros. */
bool plant_has_hole(const uint8_t *bytes, size_t len)
{
    enum { HOLE_BYTES = 32 }; /* the numbers of a change have fewer zeros in a row */
    size_t zeros = 0;
    for (size_t i = 0; i < len && zeros < HOLE_BYTES; i++)
        zeros = bytes[i] ? 0 : zeros + 1;
    return zeros == HOLE_BYTES;
}

uint32_t __real_crc32c(uint32_t crc, struct slice bytes);
uint32_t __wrap_crc32c(uint32_t crc, struct slice bytes);
uint32_t __wrap_crc32c(uint32_t crc, struct slice bytes)
{
    enum { PIECE = 256 };
    if (!plant_is(PLANT_HALF_CHECKSUM))
        return __real_crc32c(crc, bytes);
    for (size_t done = 0; done < bytes.len; done += PIECE) {
        uint8_t masked[PIECE];
        size_t len = size_min(PIECE, bytes.len - done);
        for (size_t i = 0; i < len; i++)
            masked[i] = bytes.ptr[done + i] & 0x55;
        crc = __real_crc32c(crc, slice_of(masked, len));
    }
    return crc;
}

/* -- Stalls -- */

void __real_local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns);
void __wrap_local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns);
void __wrap_local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns)
{
    if (!plant_is(PLANT_STALL))
        __real_local_lease_away(lease, from_ns, now_ns);
}

enum status __real_lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                                int64_t *ret_ttl_s);
enum status __wrap_lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                                int64_t *ret_ttl_s);
enum status __wrap_lessor_renew(struct lessor *lessor, int64_t id, int64_t asked_ns, int64_t now_ns,
                                int64_t *ret_ttl_s)
{
    struct lessor_lease lease;
    if (plant_is(PLANT_STALL))
        asked_ns = now_ns;
    if (plant_chance(PLANT_RENEWAL_LOST, 4) && lessor_get(lessor, id, &lease)) {
        *ret_ttl_s = lease.ttl_s;
        return ST_OK;
    }
    return __real_lessor_renew(lessor, id, asked_ns, now_ns, ret_ttl_s);
}

/* -- A slow disk -- */

static int64_t sync_ns; /* how long the last one took */

enum status __real_store_sync(struct store *store);
enum status __wrap_store_sync(struct store *store);
enum status __wrap_store_sync(struct store *store)
{
    int64_t begun = actors_now();
    enum status status = __real_store_sync(store);
    sync_ns = actors_now() - begun;
    return status;
}

void __real_local_answer_chain(struct local_shard_base *shard, const struct mailbox_chain *chain);
void __wrap_local_answer_chain(struct local_shard_base *shard, const struct mailbox_chain *chain);
void __wrap_local_answer_chain(struct local_shard_base *shard, const struct mailbox_chain *chain)
{
    bool refuses = plant_is(PLANT_SLOW_SYNC) && sync_ns > 900 * NS_PER_MS;
    for (struct mailbox_node *node = chain->first; refuses && node; node = node->next)
        if (op_of(node)->kind == ENGINE_PUT && op_of(node)->status == ST_OK)
            op_of(node)->status = ST_REQUEST_TOO_MANY_REQUESTS;
    __real_local_answer_chain(shard, chain);
}

/* -- Stops -- */

static bool stopping;

void __real_local_keeper_stop(struct local_keeper *keeper);
void __wrap_local_keeper_stop(struct local_keeper *keeper);
void __wrap_local_keeper_stop(struct local_keeper *keeper)
{
    stopping = true;
    __real_local_keeper_stop(keeper);
    stopping = false;
}

enum status __real_backend_version_put(struct backend *backend,
                                       const struct backend_version *version);
enum status __wrap_backend_version_put(struct backend *backend,
                                       const struct backend_version *version);
enum status __wrap_backend_version_put(struct backend *backend,
                                       const struct backend_version *version)
{
    if (stopping && plant_chance(PLANT_LAST_CHECKPOINT, 4))
        return ST_OK;
    return __real_backend_version_put(backend, version);
}
