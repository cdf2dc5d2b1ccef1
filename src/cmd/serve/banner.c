#include "cmd/serve/banner.h"

#include "cmd/serve/kubeconfig.h"
#include "cmd/version.h"

static bool is_unix(const char *url)
{
    return strncmp(url, "unix", 4) == 0;
}

static void write_kube_url(FILE *to, const struct serve_config *config, struct server *server)
{
    char text[URL_TEXT_BYTES];
    url_format(kubeconfig_url(config, server), text);
    fprintf(to, "  Kubernetes   %s\n", text);
}

void banner_write(FILE *to, const struct serve_config *config, struct server *server,
                  const char *kubeconfig)
{
    char first[URL_TEXT_BYTES] = "";
    fprintf(to, "Vigil %s is ready to serve client requests as etcd %s.\n\n", VIGIL_VERSION,
            config->server.etcd.version);
    for (size_t i = config->client_count; i-- > 0;) {
        url_format(server_bound(server, i), first);
        fprintf(to, "  gRPC, HTTP   %s\n", first);
    }
    if (kubeconfig)
        write_kube_url(to, config, server);
    else if (config->kube_withheld)
        fprintf(to, "  Kubernetes   not served by default: %s (--listen-kube-urls)\n",
                config->kube_withheld);
    if (config->server.clustered)
        fprintf(to, "  cluster      %s\n", config->server.cluster.upstream.endpoints);
    fprintf(to, config->server.clustered ? "  mirror       %s\n\n" : "  data         %s\n\n",
            config->server.engine.data_dir);
    fprintf(to, "In another terminal (etcdctl: Debian package etcd-client):\n\n");
    fprintf(to, "    export ETCDCTL_API=3 ETCDCTL_ENDPOINTS=%s\n", first);
    fprintf(to, "    etcdctl put greeting hello\n");
    fprintf(to, "    etcdctl get --prefix ''\n");
    if (is_unix(first))
        fprintf(to, "    curl --unix-socket %s http://localhost/health\n",
                first + strlen("unix://"));
    else
        fprintf(to, "    curl %s/health\n", first);
    if (kubeconfig)
        fprintf(to, "    kubectl --kubeconfig %s api-resources\n", kubeconfig);
    fprintf(to, config->server.clustered
                    ? "\nCtrl-C stops the server; the cluster keeps all data.\n\n"
                    : "\nCtrl-C stops the server; acknowledged writes are kept.\n\n");
}
