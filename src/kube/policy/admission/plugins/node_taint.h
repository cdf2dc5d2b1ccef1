/* TaintNodesByCondition: no pod is scheduled to a new node before it is ready. */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NODE_TAINT_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_NODE_TAINT_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_node_taint;

#endif
