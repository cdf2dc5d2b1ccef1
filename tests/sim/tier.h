/*
 * The watch tier (vigil serve --upstream-kubeconfig) as the second machine of a run, in front of
 * the Kubernetes API of the first one, which it reaches by an address of its own.
 *
 * The Kubernetes API behind it has these users; a user's token is its name:
 *
 *     root    may do everything; so may the tier's own account
 *     ann     gets the right to read ConfigMaps, and loses it
 *     eve     never has it
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

/* In half of the seeds, watches of the mirror are ended early. */
void tier_begin(uint64_t seed);
void tier_end(void);

void tier_configure(struct server_config *config);
/* A fault: the server behind it refuses every other request with 429 until that time. */
void tier_throttle(int64_t until_ns);

/* The server behind it has users and roles. */
void tier_configure_upstream(struct server_config *config);

#endif
