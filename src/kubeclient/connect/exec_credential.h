/*
 * What a client and an exec plugin say to each other: an object ExecCredential of
 * client.authentication.k8s.io, version v1 or v1beta1, whose spec the plugin finds in its
 * environment and whose status it prints, as JSON or YAML.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_EXEC_CREDENTIAL_H
#define VIGIL_KUBECLIENT_CONNECT_EXEC_CREDENTIAL_H

#include "base/buf.h"
#include "base/clock.h"
#include "kubeclient/connect/kubeconfig.h"

enum { EXEC_CREDENTIAL_ARENA_BYTES_MAX = 32 << 20 };

struct exec_credential {
    struct slice token;     /* empty: none */
    struct slice cert, key; /* PEM; both are empty, or none is */
    int64_t expires_ns;     /* on the real-time clock; CLOCK_NEVER: never */
};

/* Whether plugins of this version can be used. */
bool exec_credential_version_known(const char *api_version);

/* Appends what the plugin is given, with the cluster if it is wanted, whose authorities are these.
 * ST_NOMEM. */
MUST_CHECK
enum status exec_credential_write(struct buf *to, const struct kubeconfig *config,
                                  struct slice ca_pem);

/*
 * What the plugin printed. The result borrows the text or is in the arena. ST_MALFORMED: the error
 * says what is wrong, without naming the plugin; ST_NOMEM.
 */
MUST_CHECK
enum status exec_credential_read(struct arena *arena, struct slice text, const char *api_version,
                                 struct exec_credential *ret_credential, struct error *error);

#endif
