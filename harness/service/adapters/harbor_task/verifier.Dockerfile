FROM {image}
USER root
ENTRYPOINT []
CMD ["bash"]
WORKDIR /app
COPY . /tests/
