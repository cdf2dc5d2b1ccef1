vigil_corpus(etcd txn)
