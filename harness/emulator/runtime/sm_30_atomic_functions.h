// Its names are in every CUDA source already.
