/* The handlers of reads, one file each; each answers its call, now or later. */
#ifndef VIGIL_KUBE_HANDLERS_READ_READ_H
#define VIGIL_KUBE_HANDLERS_READ_READ_H

struct kube_call;

void kube_get(struct kube_call *call);
void kube_list(struct kube_call *call);
void kube_watch(struct kube_call *call);
/* Answers a get or list of componentstatuses. */
void kube_components(struct kube_call *call);

#endif
