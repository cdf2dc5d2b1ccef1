vigil_corpus(import wal)
