/*
 * Answers of DNS to a query for SRV records (RFC 2782), which name the servers of a domain:
 * "_etcd-client._tcp.example.com" → targets with ports. The bytes come from the network, so nothing
 * in them is trusted. No state; any thread.
 */
#ifndef VIGIL_CLIENT_NAMES_SRV_H
#define VIGIL_CLIENT_NAMES_SRV_H

#include "base/slice.h"
#include "base/status.h"

struct random;

enum {
    SRV_HOST_BYTES = 254,    /* the longest name of DNS as text, and a NUL */
    SRV_TARGETS_MAX = 64,    /* limit on the targets of one answer; more are ignored */
    SRV_ANSWER_BYTES = 65535 /* the longest message of DNS */
};

struct srv_target {
    uint16_t priority, weight, port;
    char host[SRV_HOST_BYTES]; /* without the dot at the end */
};

/*
 * Reads the SRV records of an answer, in its order, into targets (room for SRV_TARGETS_MAX). Other
 * records are skipped, and targets whose names are not host names, or "." (there is no such
 * service). ST_NOT_FOUND: there is no target. ST_MALFORMED: the answer is damaged; ST_AGAIN: the
 * DNS server reports a failure.
 */
MUST_CHECK
enum status srv_parse(struct slice answer, struct srv_target *targets, size_t *ret_count);

/* By priority, the lowest first; within one priority at random by weight, as Go does it. */
void srv_order(struct srv_target *targets, size_t count, struct random *random);

#endif
