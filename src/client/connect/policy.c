#include "client/connect/policy.h"

#include "base/macros.h"
#include "client/connect/error.h"

/* Errors that are not here are about the request, and every endpoint would answer the same; except
 * for unknown ones with the code UNAVAILABLE, which are those of a proxy or of another version. */
static const struct {
    enum status status;
    struct error_policy policy;
} policies[] = {
    {ST_NOT_SUPPORTED_FOR_LEARNER, {.leaves = true, .is_not_done = true}}, /* voters can do it */
    {ST_NO_LEADER, {.leaves = true}},
    {ST_STOPPED, {.leaves = true}},
    {ST_TIMEOUT,
     {.leaves = true}}, /* the server's own timeout: it waits longer for a leader than most calls */
    {ST_TIMEOUT_DUE_TO_LEADER_FAIL, {.leaves = true}},
    {ST_TIMEOUT_DUE_TO_CONNECTION_LOST, {.leaves = true}},
    {ST_TIMEOUT_WAIT_APPLIED_INDEX, {.leaves = true}},
    {ST_UNHEALTHY, {.leaves = true}},
    {ST_LEADER_CHANGED, {0}}, /* the member has a leader again */
};

struct error_policy error_policy_of(enum grpc_code code, struct slice text)
{
    enum status status = client_status_of(text);
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        if (policies[i].status == status)
            return policies[i].policy;
    return (struct error_policy){.leaves = code == GRPC_UNAVAILABLE};
}
