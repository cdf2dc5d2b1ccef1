#include "kube/policy/security/checks.h"

#include "kube/policy/security/contexts.h"
#include "kube/policy/security/sharing.h"

#define BASELINE POD_LEVEL_BASELINE
#define RESTRICTED POD_LEVEL_RESTRICTED
#define ALWAYS POD_CHECK_ALWAYS
#define NEVER POD_CHECK_NEVER

/* In the order of messages: by level, then by name. */
const struct pod_check_row pod_checks[] = {
    {"appArmorProfile", BASELINE, ALWAYS, NEVER, pod_passes_app_armor},
    {"capabilities_baseline", BASELINE, ALWAYS, POD_CAPABILITIES_MINOR,
     pod_passes_default_capabilities},
    {"hostNamespaces", BASELINE, ALWAYS, NEVER, pod_passes_host_namespaces},
    {"hostPathVolumes", BASELINE, ALWAYS, ALWAYS, pod_passes_host_paths},
    {"hostPorts", BASELINE, ALWAYS, NEVER, pod_passes_host_ports},
    {"hostProbesAndHostLifecycle", BASELINE, 34, NEVER, pod_passes_hosts},
    {"privileged", BASELINE, ALWAYS, NEVER, pod_passes_privileged},
    {"procMount", BASELINE, ALWAYS, POD_USER_NAMESPACES_MINOR, pod_passes_proc_mount},
    {"seLinuxOptions", BASELINE, ALWAYS, NEVER, pod_passes_se_linux},
    {"seccompProfile_baseline", BASELINE, ALWAYS, POD_SECCOMP_FIELDS_MINOR, pod_passes_seccomp},
    {"sysctls", BASELINE, ALWAYS, NEVER, pod_passes_sysctls},
    {"windowsHostProcess", BASELINE, ALWAYS, NEVER, pod_passes_windows},
    {"allowPrivilegeEscalation", RESTRICTED, 8, NEVER, pod_passes_escalation},
    {"capabilities_restricted", RESTRICTED, POD_CAPABILITIES_MINOR, NEVER, pod_passes_capabilities},
    {"procMount_restricted", RESTRICTED, POD_USER_NAMESPACES_MINOR, NEVER,
     pod_passes_proc_mount_always},
    {"restrictedVolumes", RESTRICTED, ALWAYS, NEVER, pod_passes_volumes},
    {"runAsNonRoot", RESTRICTED, ALWAYS, NEVER, pod_passes_non_root},
    {"runAsUser", RESTRICTED, 23, NEVER, pod_passes_user},
    {"seccompProfile_restricted", RESTRICTED, POD_SECCOMP_FIELDS_MINOR, NEVER,
     pod_passes_seccomp_set},
    {NULL, BASELINE, ALWAYS, NEVER, NULL},
};
