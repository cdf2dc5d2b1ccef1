/*
 * The second server of a run, in front of the first one (vigil serve --upstream-endpoints): what
 * it needs that the first one does not have. It reaches the first one by an address of its own, so
 * that the way between them can be cut.
 */
#ifndef VIGIL_TESTS_SIM_FRONT_H
#define VIGIL_TESTS_SIM_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include <vigil/vigil.h>

struct machine;
struct server_config;

#define FRONT_DIR "/front"
#define FRONT_ENDPOINT "http://127.0.0.1:12379"
#define FRONT_KUBE_ENDPOINT "http://127.0.0.1:18080"
/* The address of the first server, for the one in front of it alone. */
#define FRONT_LINK_ENDPOINT "http://127.0.0.1:2378"

void front_begin(void);
void front_starts(void);
/* At that time or later it had a mirror that it has thrown away since, because it was damaged.
 * What clients know from that mirror may be refused as compacted. */
bool front_has_void_mirror(int64_t since_ns);

/* For that machine. user: the user of the server in front, whose password is its name, or NULL. */
void front_configure(struct server_config *config, struct machine *machine, const char *user);
/* The machine was started again, so that its mirror counts as lost. */
void front_boot(void);

/* In the end: the mirror has what the server behind it has, soon. Inside an actor. */
void front_compare(vigil_client *client, vigil_client *behind_client);

/* The endpoints of one of the clients: those of the one in front, of the one behind, or both. */
const char *front_endpoints(bool has_front, unsigned client);

#endif
