vigil_corpus(import v2_snapshot)
vigil_corpus(import wal)
