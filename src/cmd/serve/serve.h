/*
 * `vigil serve`, also started as `etcd` or `kube-apiserver`: reads the flags, starts the server,
 * waits for a signal.
 *
 * SIGTERM and SIGINT end it gracefully, a second signal ends it at once. The exit status is 0, 1
 * when the server could not start, and 2 for wrong flags. Started as etcd it dies by the signal.
 */
#ifndef VIGIL_CMD_SERVE_SERVE_H
#define VIGIL_CMD_SERVE_SERVE_H

enum serve_name { SERVE_AS_VIGIL, SERVE_AS_ETCD, SERVE_AS_APISERVER };

struct serve_how {
    enum serve_name name;
    /* Flags that were accepted and have no effect, separated by commas, for one line of the log;
     * "": none. */
    const char *without_effect;
    /* The same of flags on whose effect an operator may rely, for a warning. */
    const char *not_enforced;
};

/* args are the flags of `vigil serve`, after the name of the command. */
int serve_main(int count, char **args, const struct serve_how *how);

#endif
