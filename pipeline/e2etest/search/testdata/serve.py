"""Serves a sentence transformer by OpenAI's API for embeddings, on a free port of loopback
that it prints. Arguments: the model's .onnx file and its tokenizer.json."""
import http.server, json, sys

import numpy, onnxruntime
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file(sys.argv[2])
tokenizer.no_padding()
tokenizer.enable_truncation(128)  # the length that the model was trained with
model = onnxruntime.InferenceSession(sys.argv[1])


def embed(texts):
    vectors = [None] * len(texts)
    encoded = tokenizer.encode_batch(texts)
    by_length = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
    for at in range(0, len(texts), 8):
        some = by_length[at : at + 8]
        length = max(len(encoded[i].ids) for i in some)
        ids = numpy.zeros((len(some), length), dtype=numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, i in enumerate(some):
            ids[row, : len(encoded[i].ids)] = encoded[i].ids
            mask[row, : len(encoded[i].ids)] = 1
        states = model.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)})[0]
        means = (states * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
        for row, i in enumerate(some):
            vectors[i] = means[row].tolist()
    return vectors


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps({"data": [{"index": i, "embedding": v} for i, v in enumerate(embed(asked["input"]))]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
