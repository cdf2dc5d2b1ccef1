vigil_corpus(cmd config_file)
