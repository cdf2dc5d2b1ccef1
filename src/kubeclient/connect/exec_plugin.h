/*
 * A program that prints credentials for a server, as a kubeconfig names it (exec). It is run
 * without a shell and without a terminal, with the environment of the program as it was when the
 * client was created, the variables of the kubeconfig, and KUBERNETES_EXEC_INFO. A command without
 * a slash is searched for in the absolute directories of PATH.
 *
 *     idle ──run──► running ──► on_end ──► idle
 *
 * Owned by the credentials of a client; its loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_EXEC_PLUGIN_H
#define VIGIL_KUBECLIENT_CONNECT_EXEC_PLUGIN_H

#include "kubeclient/connect/child.h"
#include "kubeclient/connect/exec_credential.h"

struct exec_plugin;

enum { EXEC_PLUGIN_VARIABLES_MAX = 1024 }; /* limit on the variables of the kubeconfig */

struct exec_plugin_options {
    struct loop *loop;                 /* borrowed */
    const struct kubeconfig *config;   /* borrowed */
    const struct child_runner *runner; /* borrowed */
    /*
     * Exactly once for each run, not from within exec_plugin_run. ST_OK: the credential is borrowed
     * until on_end returns. Otherwise the error names the command and says what happened, with the
     * beginning of what it printed to its standard error: ST_NOT_FOUND, ST_IO (it failed), ST_LIMIT
     * (too much output, too many processes or descriptors), ST_TIMEOUT, ST_MALFORMED, ST_NOMEM. The
     * plugin may be run again inside.
     */
    void (*on_end)(void *ctx, enum status status, const struct exec_credential *credential,
                   const struct error *error);
    void *ctx;
};

/* ST_INVALID, ST_LIMIT, ST_NOMEM; errors of the cluster's authority file, if the plugin wants it.
 */
MUST_CHECK
enum status exec_plugin_new(const struct exec_plugin_options *options,
                            struct exec_plugin **ret_plugin, struct error *error);
/* Kills the program if it runs; on_end is not called. */
void exec_plugin_free(struct exec_plugin *plugin);
DEFINE_CLEANUP(struct exec_plugin *, exec_plugin_free)

/* The plugin is idle. */
void exec_plugin_run(struct exec_plugin *plugin);
bool exec_plugin_runs(const struct exec_plugin *plugin);

#endif
