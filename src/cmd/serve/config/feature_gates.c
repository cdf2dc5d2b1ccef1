#include "cmd/serve/config/feature_gates.h"

#include "base/options/value.h"

#include <stdio.h>

static const struct feature_gate defaults[FEATURE_GATES] = {
    {"AllAlpha", "ALPHA", false},
    {"AllBeta", "BETA", false},
    {"CompactHashCheck", "ALPHA", false},
    {"FastLeaseKeepAlive", "BETA", true},
    {"InitialCorruptCheck", "ALPHA", false},
    {"LeaseCheckpoint", "ALPHA", false},
    {"LeaseCheckpointPersist", "ALPHA", false},
    {"PriorityRequest", "ALPHA", false},
    {"SetMemberLocalAddr", "ALPHA", false},
    {"StopGRPCServiceOnDefrag", "ALPHA", false},
    {"TxnModeWriteWithSharedBuffer", "BETA", true},
};

/* AllAlpha and AllBeta stand for every gate of their stage that is not named itself. */
struct reading {
    struct feature_gate *gates;
    bool named[FEATURE_GATES];
};

static enum status read_gate(struct reading *reading, struct slice item, struct error *error)
{
    const uint8_t *equals = memchr(item.ptr, '=', item.len);
    size_t name_len = equals ? (size_t)(equals - item.ptr) : item.len;
    struct slice name = slice_trim(slice_sub(item, 0, name_len));
    if (!equals)
        return error_set(error, ST_INVALID, "missing bool value for %.*s", SLICE_ARGS(name));
    struct slice value = slice_trim(slice_sub(item, name_len + 1, item.len - name_len - 1));
    char text[8];
    bool on = false;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(value));
    if (value.len >= sizeof(text) || option_value_bool(text, &on) != ST_OK)
        return error_set(error, ST_INVALID, "invalid value of %.*s=%.*s, err: not true or false",
                         SLICE_ARGS(name), SLICE_ARGS(value));
    for (size_t i = 0; i < FEATURE_GATES; i++) {
        if (!slice_is(name, defaults[i].name))
            continue;
        reading->gates[i].enabled = on;
        reading->named[i] = true;
        return ST_OK;
    }
    return error_set(error, ST_INVALID, "unrecognized feature gate: %.*s", SLICE_ARGS(name));
}

/* As in Kubernetes' gates, a gate that is named keeps its own value, wherever in the list it is. */
static void spread(struct reading *reading, size_t all)
{
    for (size_t i = 0; reading->named[all] && i < FEATURE_GATES; i++)
        if (!reading->named[i] && strcmp(defaults[i].stage, defaults[all].stage) == 0)
            reading->gates[i].enabled = reading->gates[all].enabled;
}

enum status feature_gates_read(const char *text, struct feature_gate ret_gates[FEATURE_GATES],
                               struct error *error)
{
    struct slice item;
    struct feature_gate gates[FEATURE_GATES];
    struct reading reading = {.gates = gates};
    memcpy(gates, defaults, sizeof(gates));
    while (option_list_next(&text, &item))
        if (item.len)
            TRY(read_gate(&reading, item, error));
    spread(&reading, 0);
    spread(&reading, 1);
    memcpy(ret_gates, gates, sizeof(gates));
    return ST_OK;
}
