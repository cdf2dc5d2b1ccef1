/*
 * Vigil under the name kube-apiserver, as envtest, kwokctl and kubeadm start it: translates the
 * flags of that program into those of `vigil serve` and serves the Kubernetes API from the etcd of
 * --etcd-servers. Flags of kube-apiserver that have no counterpart are accepted and logged, or
 * refused if an operator may rely on their effect (cmd/names/apiserver_ignored.h).
 *
 * The mirror of the etcd is a directory of its own below --cert-dir, or below the directory of
 * temporary files where --cert-dir is not writable; it is removed when the server ends.
 */
#ifndef VIGIL_CMD_NAMES_APISERVER_H
#define VIGIL_CMD_NAMES_APISERVER_H

#include "cmd/names/apiserver_flags.h"

enum { APISERVER_ARGS_MAX = 64 };

/* The flags of `vigil serve`. */
struct apiserver_args {
    int count;
    char *args[APISERVER_ARGS_MAX];
    const char *without_effect; /* flags of kube-apiserver, separated by commas */
    const char *not_enforced;   /* those on whose effect an operator may rely */
};

/* Translates flags that were parsed; without the mirror's directory. The error is that of
 * kube-apiserver where it has one. */
MUST_CHECK
enum status apiserver_translate(const struct apiserver_flags *flags, struct arena *arena,
                                struct apiserver_args *ret_args, struct error *error);

/* Whether the flag is translated; for tests, which compare it with apiserver_ignored.h. */
bool apiserver_has_effect(const char *flag);

/* args are the arguments after the name of the program. Returns the exit status. */
int apiserver_main(int count, char **args);

#endif
