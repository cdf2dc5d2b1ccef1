/*
 * `vigil assets [DIR]`: makes a directory that can be the KUBEBUILDER_ASSETS of
 * controller-runtime's envtest, with links named etcd and kube-apiserver to this program, and
 * kubectl to the one in PATH if there is one; prints the directory. Without DIR it is that of the
 * installation, if its links are there, or else one in the user's data directory.
 */
#ifndef VIGIL_CMD_NAMES_ASSETS_H
#define VIGIL_CMD_NAMES_ASSETS_H

/* args[0] is the name of the command. Returns the exit status. */
int assets_main(int count, char **args);

#endif
