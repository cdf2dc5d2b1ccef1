/* Any bytes as the answer of a DNS server to a query for SRV records. */
#include "cost.h"

#include "base/random.h"
#include "client/names/srv.h"

#include <assert.h>

FUZZ_INPUT()
{
    static struct srv_target targets[SRV_TARGETS_MAX];
    struct random random;
    size_t count = 0;
    if (srv_parse(slice_of(data, size), targets, &count) != ST_OK)
        return 0;
    assert(count > 0 && count <= SRV_TARGETS_MAX);
    random_init(&random, size);
    srv_order(targets, count, &random);
    for (size_t i = 0; i < count; i++) {
        size_t len = strnlen(targets[i].host, SRV_HOST_BYTES);
        assert(len > 0 && len < SRV_HOST_BYTES);
        assert(i == 0 || targets[i - 1].priority <= targets[i].priority);
    }
    return 0;
}
