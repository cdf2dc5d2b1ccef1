/*
 * How to reach a Kubernetes API server: what a kubeconfig file or a pod's service account says
 * about it, for one context.
 *
 * Several files are read as one, as kubectl does: of clusters, users and contexts with the same
 * name the first one counts, and so does the first current-context. A relative path in a file is
 * relative to the file's directory. The credentials of a user are left out if the server's URL does
 * not begin with "https://", as in client-go: they could be read on the way. Everything is in
 * the config's arena; texts that were not given are NULL. One owner, one thread.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_KUBECONFIG_H
#define VIGIL_KUBECLIENT_CONNECT_KUBECONFIG_H

#include "base/error.h"
#include "base/memory/arena.h"

enum {
    KUBECONFIG_BYTES_MAX = 4 << 20, /* limit on the size of one file */
    KUBECONFIG_FILES_MAX = 32,
    KUBECONFIG_ARENA_BYTES_MAX = 64 << 20,
};

/* A program that prints credentials (client.authentication.k8s.io). */
struct kubeconfig_exec {
    const char *command;     /* NULL: there is none */
    const char *const *args; /* ends with NULL */
    const char *const *env;  /* "NAME=value", ends with NULL */
    const char *api_version;
    const char *install_hint;
    bool wants_cluster_info;
    struct slice cluster_config; /* JSON: the cluster's extension for plugins; empty: none */
};

/* The user in whose name requests are made (impersonation). */
struct kubeconfig_impersonation {
    const char *user; /* NULL: requests are made in the own name */
    const char *uid;
    const char *const *groups; /* ends with NULL; may be NULL */
    const struct kubeconfig_extra {
        const char *key, *value;
    } * extra; /* a key may occur several times */
    size_t extra_count;
};

/* A certificate or key: the path of a file, or the PEM text itself. */
struct kubeconfig_pem {
    const char *file;
    struct slice data; /* empty: not given; it is used instead of the file */
};
static inline bool kubeconfig_has_pem(const struct kubeconfig_pem *pem)
{
    return pem->file || pem->data.len;
}

struct kubeconfig {
    struct arena arena;
    const char *context;
    const char *server; /* "https://10.0.0.1:6443" */
    const char *name_space;
    struct kubeconfig_pem ca, cert, key;
    const char *tls_server_name;
    bool insecure_skip_verify;
    const char *proxy_url;
    bool disable_compression;
    const char *token;
    const char *token_file; /* read again when it may have changed; the token is used until the
                               file has been read */
    const char *user, *password;
    struct kubeconfig_impersonation impersonate;
    struct kubeconfig_exec exec;
};

/* What the configuration would show to the server, such as "a token"; NULL: nothing. */
const char *kubeconfig_credential(const struct kubeconfig *config);

/* A zeroed config may be finished. */
void kubeconfig_fini(struct kubeconfig *config);

struct kubeconfig_file {
    const char *path;  /* for errors and for relative paths in it */
    struct slice text; /* YAML or JSON */
};

/* context: NULL for the current one. ST_MALFORMED, ST_NOT_FOUND, ST_NOMEM, with a text that names
 * the file and what is wrong. */
MUST_CHECK
enum status kubeconfig_read(const struct kubeconfig_file *files, size_t count, const char *context,
                            struct kubeconfig *ret_config, struct error *error);

/* The same for the files of a list as in $KUBECONFIG, separated by colons. Missing files are left
 * out, unless there is only one. */
MUST_CHECK
enum status kubeconfig_load(const char *paths, const char *context, struct kubeconfig *ret_config,
                            struct error *error);

/*
 * All users of one file, for a server that signs in at many others: it chooses a user by the name
 * of the host, and no cluster matters. Texts are in the arena of the list.
 */
enum { KUBECONFIG_USERS_MAX = 1000 };
struct kubeconfig_user {
    const char *name;
    struct kubeconfig config; /* only what belongs to a user; its arena is not used */
};
struct kubeconfig_users {
    struct arena arena;
    struct kubeconfig_user *items;
    size_t count;
    const char *current; /* the user of the current context; NULL: there is none */
};
MUST_CHECK
enum status kubeconfig_users_load(const char *path, struct kubeconfig_users *ret_users,
                                  struct error *error);
void kubeconfig_users_fini(struct kubeconfig_users *users); /* accepts a zeroed one */

/* In a pod: the address from the environment (KUBERNETES_SERVICE_HOST and _PORT), the rest from the
 * files of the service account in a directory. ST_NOT_FOUND: this is not a pod. */
#define KUBECONFIG_SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
MUST_CHECK
enum status kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                                  struct kubeconfig *ret_config, struct error *error);

#endif
