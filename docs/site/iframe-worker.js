// Search without a server. Browsers refuse to start a worker for a page that was opened as a file, so there, and only
// there, the search script runs in a hidden frame that behaves like a worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(frame, each)));
      this.deliver = null;
      this.load(frame, url).then(() => {
        this.deliver = (data) => inner.dispatchEvent(new inner.MessageEvent("message", { data }));
        this.waiting.splice(0).forEach(this.deliver);
      });
    }

    load(frame, url) {
      return new Promise((resolve, reject) => {
        const script = frame.contentDocument.createElement("script");
        script.src = new URL(url, document.baseURI).href;
        script.onload = resolve;
        script.onerror = reject;
        frame.contentDocument.documentElement.append(script);
      });
    }

    postMessage(data) {
      if (this.deliver) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() {}
  };
}
