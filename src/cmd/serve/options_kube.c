#include "cmd/serve/options_private.h"

static const struct option kube[] = {
    {
        .name = "listen-kube-urls",
        .kind = OPTION_LIST,
        .fallback = SERVE_KUBE_URL_DEFAULT,
        .help = "URLs on which the Kubernetes API is served. Empty: not served, which is also the "
                "default under the name etcd. The default URL is skipped if its address is in use, "
                "or unless all client URLs are plain http on loopback without client certificates.",
        FIELD(listen_kube_urls),
    },
    {
        .name = "kube-token-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of bearer tokens with lines of the form token,user,uid,\"group1,group2\". "
                "With it, the Kubernetes API serves only clients that present one of these tokens "
                "or a client certificate.",
        FIELD(kube_token_file),
    },
    {
        .name = "kube-undecodable",
        .kind = OPTION_ENUM,
        .fallback = "error",
        .choices = "error|skip",
        .help = "How a watch handles a stored value that is not a JSON object: end with an error, "
                "as Kubernetes does, or skip and count it.",
        FIELD(kube_undecodable),
    },
    {
        .name = "kube-history",
        .kind = OPTION_DURATION,
        .fallback = "5m0s",
        .help = "How long history is kept for watches after the first write through the Kubernetes "
                "API: older revisions of all keys are compacted, as a kube-apiserver does. 0: no "
                "compaction. --auto-compaction-retention takes precedence.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(kube_history_ns),
    },
    {
        .name = "kube-history-bytes",
        .kind = OPTION_SIZE,
        .fallback = "268435456",
        .help = "When this many bytes were added to the store, history is shortened to three "
                "tenths of --kube-history; 0: no limit.",
        .min = 0,
        .max = 1024L * 1024 * MIB,
        FIELD(kube_history_bytes),
    },
};

const struct option_group serve_kube_options = GROUP("Kubernetes API", kube);
