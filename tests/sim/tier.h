/*
 * The watch tier (vigil serve --upstream-kubeconfig) as the second machine of a run, in front of
 * the Kubernetes API of the first one, which it reaches by an address of its own.
 *
 * The Kubernetes API behind it has these users; a user's token is its name:
 *
 *     root    may do everything; so may the tier's own account
 *     ann     gets the right to read ConfigMaps, and loses it
 *     eve     never has it
 *     dan     may do everything, until the token expires
 */
#ifndef VIGIL_TESTS_SIM_TIER_H
#define VIGIL_TESTS_SIM_TIER_H

#include <stdbool.h>
#include <stdint.h>

struct server_config;

#define TIER_DIR "/tier"
#define TIER_KUBE_ENDPOINT "http://127.0.0.1:18081"
/* The address of the first server, for the tier alone. */
#define TIER_LINK_ENDPOINT "http://127.0.0.1:8081"
/* The replica's, to which half of the connections to that address go if there is one. */
#define TIER_REPLICA_ENDPOINT "http://127.0.0.1:8082"

/* In half of the seeds, watches of the mirror are ended early. */
void tier_begin(uint64_t seed);
void tier_end(void);

void tier_configure(struct server_config *config);
/* A fault: the server behind it refuses every other request with 429 until that time. */
void tier_throttle(int64_t until_ns);
/* The same: it answers every read of ConfigMaps that is not a watch with 500, as with a conversion
 * webhook that fails. */
void tier_fail_reads(int64_t until_ns);
/* Whether an answer with 500 may come from there. */
bool tier_reads_have_failed(void);
/* It runs, and ConfigMaps are mirrored. */
bool tier_has_mirror(void);
/* Dan's token is not valid any more. */
void tier_expire_token(void);

/* The server behind it has users and roles. */
void tier_configure_upstream(struct server_config *config);

#endif
