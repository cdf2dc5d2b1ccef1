#include "cmd/serve_options_rows.h"

static const struct option kube[] = {
    {
        .name = "listen-kube-urls",
        .kind = OPTION_LIST,
        .fallback = SERVE_KUBE_URL_DEFAULT,
        .help = "Where to serve the Kubernetes API. Empty: nowhere, as under the name etcd unless "
                "it is given. The default is passed over if somebody else has that address, or if "
                "the client URLs are not all plain http on loopback without certificates.",
        FIELD(listen_kube_urls),
    },
    {
        .name = "kube-token-file",
        .kind = OPTION_TEXT,
        .fallback = "",
        .help = "A file of bearer tokens, each line token,user,uid,\"group1,group2\". With it only "
                "those who have one, or a client certificate, may use the Kubernetes API.",
        FIELD(kube_token_file),
    },
    {
        .name = "kube-undecodable",
        .kind = OPTION_ENUM,
        .fallback = "error",
        .choices = "error|skip",
        .help = "What a watch does about a stored value that is no object in JSON: end with an "
                "error, as Kubernetes does, or pass over it and count it.",
        FIELD(kube_undecodable),
    },
    {
        .name = "kube-history",
        .kind = OPTION_DURATION,
        .fallback = "5m0s",
        .help = "How long history is kept for watches once something was written through the "
                "Kubernetes API: older revisions are compacted, those of other keys too, as a "
                "kube-apiserver does it. 0: only when asked. --auto-compaction-retention goes "
                "before it.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(kube_history_ns),
    },
    {
        .name = "kube-history-bytes",
        .kind = OPTION_SIZE,
        .fallback = "268435456",
        .help = "How much may be added to the store before history is shortened to three tenths "
                "of --kube-history; 0: any.",
        .min = 0,
        .max = 1024L * 1024 * MIB,
        FIELD(kube_history_bytes),
    },
};

const struct option_group serve_kube_options = GROUP("Kubernetes API", kube);
