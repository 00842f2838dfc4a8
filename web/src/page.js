// Starts the scatters of a page; one that fails leaves the still picture in its place.
import { ready } from "./dom.js";
import { Scatter } from "./scatter.js";

ready(() => {
  for (const root of document.querySelectorAll("[data-scatter]")) {
    try {
      root.scatter = new Scatter(root);
    } catch (error) {
      root.classList.remove("running");
      root.querySelector(".live")?.remove();
      console.error(error);
    }
  }
});
